/** A seeded source of numbers in [0, 1): mulberry32, 32 bits of state, the same on every machine. */
export type Random = () => number;

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function randomInt(random: Random, below: number): number {
  return Math.floor(random() * below);
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[randomInt(random, from.length)] as T;
}
