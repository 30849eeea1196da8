/**
 * Prometheus' chunks of samples (Gorilla: differences of differences of times, XOR of values), decoded straight into
 * columns. 64-bit arithmetic is done on two halves: BigInt would cost more than the rest together.
 */
import type { SampleColumns } from "../metrics/sample-columns.ts";

/** What may be read beyond a chunk's end; the caller's buffer must have it. */
export const SLACK_BYTES = 8;

const ONE = new Float64Array(1);
const WORDS = new Uint32Array(ONE.buffer);
const HIGH = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 1 : 0;
const LOW = 1 - HIGH;
const TWO_32 = 4294967296;

/** `count` ≤ 24. */
function bits(bytes: Uint8Array, bit: number, count: number): number {
  const at = bit >>> 3;
  const word = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  return (word << (bit & 7)) >>> (32 - count);
}

/** 1 ≤ `count` ≤ 32; signed where all 32 are asked for. */
function longBits(bytes: Uint8Array, bit: number, count: number): number {
  if (count <= 24) return bits(bytes, bit, count);
  return (bits(bytes, bit, count - 16) << 16) | bits(bytes, bit + count - 16, 16);
}

/** Adds the samples from `startMs` to `endMs`; false where the chunk is damaged. */
export function readXorChunk(
  bytes: Uint8Array,
  from: number,
  to: number,
  columns: SampleColumns,
  startMs: number,
  endMs: number,
): boolean {
  if (to - from < 2) return false;
  const count = (bytes[from]! << 8) | bytes[from + 1]!;
  const endBit = to * 8;
  let bit = (from + 2) * 8;
  let timeMs = 0;
  let deltaMs = 0;
  let leading = 0;
  let significant = 0;
  for (let i = 0; i < count; i++) {
    if (i < 2) {
      // A varint; the first is signed.
      let read = 0;
      let factor = 1;
      let byte: number;
      do {
        byte = bits(bytes, bit, 8);
        bit += 8;
        read += (byte & 127) * factor;
        factor *= 128;
      } while (byte >= 128 && bit < endBit);
      if (i === 0) {
        timeMs = read % 2 === 0 ? read / 2 : -(read + 1) / 2;
        WORDS[HIGH] = longBits(bytes, bit, 32);
        WORDS[LOW] = longBits(bytes, bit + 32, 32);
        bit += 64;
      } else deltaMs = read;
    } else if (bits(bytes, bit, 1) === 0) bit++;
    else {
      // 10, 110, 1110 and 1111 lead differences of 14, 17, 20 and 64 bits.
      const lead = bits(bytes, bit, 4);
      if (lead === 15) {
        deltaMs += longBits(bytes, bit + 4, 32) * TWO_32 + (longBits(bytes, bit + 36, 32) >>> 0);
        bit += 68;
      } else {
        const ones = lead < 12 ? 1 : lead < 14 ? 2 : 3;
        const size = 11 + 3 * ones;
        const change = bits(bytes, bit + ones + 1, size);
        deltaMs += change > 1 << (size - 1) ? change - (1 << size) : change;
        bit += ones + 1 + size;
      }
    }
    if (i > 0) {
      timeMs += deltaMs;
      if (bits(bytes, bit, 1) === 0) bit++;
      else {
        if (bits(bytes, bit, 2) === 2) bit += 2;
        else {
          leading = bits(bytes, bit + 2, 5);
          significant = bits(bytes, bit + 7, 6) || 64;
          bit += 13;
        }
        const trailing = 64 - leading - significant;
        if (trailing < 0) return false;
        let high = 0;
        if (significant > 32) {
          high = longBits(bytes, bit, significant - 32);
          bit += significant - 32;
        }
        const lowCount = significant > 32 ? 32 : significant;
        const low = lowCount === 0 ? 0 : longBits(bytes, bit, lowCount);
        bit += lowCount;
        if (trailing >= 32) WORDS[HIGH]! ^= low << (trailing - 32);
        else if (trailing === 0) {
          WORDS[HIGH]! ^= high;
          WORDS[LOW]! ^= low;
        } else {
          WORDS[HIGH]! ^= (high << trailing) | (low >>> (32 - trailing));
          WORDS[LOW]! ^= low << trailing;
        }
      }
    }
    if (bit > endBit) return false;
    if (timeMs >= startMs && timeMs <= endMs) {
      columns.addTime(timeMs / 1000);
      columns.addValue(ONE[0]!);
    }
  }
  return true;
}
