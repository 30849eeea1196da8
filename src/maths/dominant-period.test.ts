import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seeded } from "../base/random.ts";
import { dominantPeriod } from "./dominant-period.ts";
import { gaussian } from "../../test/support/noise.ts";

describe("the dominant period", () => {
  test("of a noisy rhythm is found to within 3 %, whole or not", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 3, max: 30, noNaN: true }),
        fc.integer({ min: 1, max: 1e6 }),
        (period, seed) => {
          const random = seeded(seed);
          const values = Array.from(
            { length: 240 },
            (_, i) => Math.sin((2 * Math.PI * i) / period) + 0.5 * gaussian(random),
          );
          const found = dominantPeriod(values)!;
          expect(Math.abs(found.period / period - 1)).toBeLessThan(0.03);
          expect(found.chance).toBeLessThan(1e-6);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("of noise has a large chance to be noise", () => {
    const random = seeded(7);
    const sure = Array.from({ length: 200 }, () =>
      dominantPeriod(Array.from({ length: 150 }, () => gaussian(random))),
    ).filter((found) => found!.chance < 0.001);
    expect(sure.length).toBeLessThanOrEqual(2);
  });

  test("of a constant or of too few points is none", () => {
    expect(dominantPeriod(new Float64Array(50).fill(3))).toBeNull();
    expect(dominantPeriod([1, 2, 1, 2])).toBeNull();
  });

  test("of single beats is the beat, not one of its harmonics", () => {
    for (let period = 5; period <= 40; period++) {
      const random = seeded(period);
      const beats = Array.from({ length: 1000 }, (_, i) =>
        i % period === 0 || random() < 0.01 ? 1 : 0,
      );
      expect(dominantPeriod(beats)!.period).toBeCloseTo(period, 0);
    }
  });
});
