import { expect, test } from "vitest";
import { seeded } from "../base/random.ts";
import { LevelTracker } from "./level-tracker.ts";
import { correlated, white, type Noise } from "../../test/support/noise.ts";

/** How many of 40 series of 240 points, whose level rises in the middle, are found to rise. */
function found(noise: (seed: number) => Noise, rise: number): number {
  let count = 0;
  for (let seed = 0; seed < 40; seed++) {
    const [tracker, next] = [new LevelTracker(), noise(seed)];
    let isFound = false;
    for (let i = 0; i < 240; i++) {
      const shift = tracker.push(i, (i < 120 ? 1000 : 1000 * (1 + rise)) * Math.exp(next()));
      isFound ||= shift !== null && shift.after > shift.before;
    }
    if (isFound) count++;
  }
  return count;
}

test.each([
  ["white noise", (seed: number) => white(seeded(seed), 0.015)],
  ["noise with a memory", (seed: number) => correlated(seeded(seed), 0.015, 0.6)],
])("in %s a rise of a tenth counts wherever its median falls, and less does not", (_, noise) => {
  expect(found(noise, 0.1)).toBeGreaterThanOrEqual(39);
  expect(found(noise, 0.06)).toBe(0);
  expect(found(noise, 0)).toBe(0);
});
