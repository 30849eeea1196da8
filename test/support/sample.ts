import { randomInt, type Random } from "../../src/base/random.ts";

/** Sorted sample of `count` distinct integers below `below`. */
export function sample(random: Random, below: number, count: number): number[] {
  const chosen = new Set<number>();
  while (chosen.size < Math.min(count, below)) chosen.add(randomInt(random, below));
  return [...chosen].sort((a, b) => a - b);
}
