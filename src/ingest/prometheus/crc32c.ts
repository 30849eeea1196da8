/** CRC-32 of Castagnoli, by which remote read guards its frames. */

/** The polynomial, its bits reversed. */
const POLYNOMIAL = 0x82f63b78;
/** Four tables: four bytes a step, which is three times as fast as one. */
const TABLES = [0, 1, 2, 3].map(() => new Int32Array(256));
const [T0, T1, T2, T3] = TABLES as [Int32Array, Int32Array, Int32Array, Int32Array];
for (let byte = 0; byte < 256; byte++) {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  T0[byte] = crc;
}
for (let byte = 0; byte < 256; byte++) {
  for (let t = 1; t < 4; t++) {
    const before = TABLES[t - 1]![byte]!;
    TABLES[t]![byte] = (before >>> 8) ^ T0[before & 255]!;
  }
}

export function crc32c(bytes: Uint8Array, from: number, to: number): number {
  let crc = -1;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc = T3[crc & 255]! ^ T2[(crc >>> 8) & 255]! ^ T1[(crc >>> 16) & 255]! ^ T0[crc >>> 24]!;
  }
  for (; at < to; at++) crc = (crc >>> 8) ^ T0[(crc ^ bytes[at]!) & 255]!;
  return ~crc >>> 0;
}
