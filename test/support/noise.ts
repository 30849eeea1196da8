/** Noise for tests of detectors: the kinds that iteration times show. */
import type { Random } from "../../src/base/random.ts";

export function gaussian(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Makes the next logarithm of a noisy value at each call. */
export type Noise = () => number;

export function white(random: Random, deviation: number): Noise {
  return () => deviation * gaussian(random);
}

export function correlated(random: Random, deviation: number, memory: number): Noise {
  let last = 0;
  return () =>
    (last = memory * last + deviation * Math.sqrt(1 - memory * memory) * gaussian(random));
}

/** Now and then a point of 1.2 to 2.2 times the level. */
export function spiky(random: Random, share: number): Noise {
  return () => 0.01 * gaussian(random) + (random() < share ? Math.log(1.2 + random()) : 0);
}

/** Now and then one to three points of half again the level. */
export function bursty(random: Random): Noise {
  let left = 0;
  return () => {
    if (left > 0) left--;
    else if (random() < 0.01) left = 1 + Math.floor(3 * random());
    return 0.015 * gaussian(random) + (left > 0 ? 0.4 : 0);
  };
}
