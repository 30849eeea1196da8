/**
 * A number in [0, 1) that depends on its coordinates only, not on how many were drawn before: a job's
 * timing must not change when a fault makes the engine visit operators in another order, because a
 * culprit's place is chosen on the healthy run and has to hold on the faulty one.
 */
export function noise(seed: number, a: number, b: number, c = 0): number {
  let h = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13) ^ Math.imul(a + 0x165667b1, 0xc2b2ae35), 0x27d4eb2f);
  h = Math.imul(h ^ (h >>> 15) ^ Math.imul(b + 0x2545f491, 0x9e3779b1), 0x85ebca77);
  h = Math.imul(h ^ (h >>> 13) ^ Math.imul(c + 0x68e31da4, 0xb5297a4d), 0xc2b2ae3d);
  h ^= h >>> 16;
  return (h >>> 0) / 4294967296;
}
