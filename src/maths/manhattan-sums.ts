/**
 * Sums of the distances |a - b| of one coordinate, by sorting: of the values below a, each adds a - b; of those above,
 * b - a; both are a prefix sum away.
 */

const bits = new Uint32Array(1);
const number = new Float32Array(bits.buffer);
/** Indices take the low 20 bits beside 32 of a value: 52 of the 53 that a double keeps exactly. */
const INDICES = 2 ** 20;
let keys = new Float64Array(0);

/** Adds to `sums`, for every value, its distance to all others. At most 2^20 values, none NaN. */
export function addManhattan(values: Float32Array, sums: Float64Array): void {
  const count = values.length;
  if (keys.length !== count) keys = new Float64Array(count);
  let total = 0;
  for (let i = 0; i < count; i++) {
    const value = values[i]!;
    total += value;
    number[0] = value;
    const raw = bits[0]!;
    // Bits of a float order like its value, once negative ones are turned round and put below.
    const ordered = raw >= 0x8000_0000 ? 0xffff_ffff - raw : raw + 0x8000_0000;
    keys[i] = ordered * INDICES + i;
  }
  // Without a comparison function this sorts numbers natively.
  keys.sort();
  let below = 0;
  for (let rank = 0; rank < count; rank++) {
    const key = keys[rank]!;
    const i = key - Math.floor(key / INDICES) * INDICES;
    const value = values[i]!;
    sums[i]! += value * rank - below + (total - below - value * (count - rank));
    below += value;
  }
}
