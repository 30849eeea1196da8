import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../base/random.ts";
import { PairwiseDistances, type DistanceMeasure } from "./pairwise-distances.ts";

const MEASURES: readonly DistanceMeasure[] = ["euclid", "manhattan", "chebyshev"];

describe.each(MEASURES)("sums of %s distances", (measure) => {
  it("are those that trying all pairs gives", () => {
    const cases = fc.record({
      count: fc.integer({ min: 1, max: 40 }),
      dimensions: fc.integer({ min: 1, max: 20 }),
      seed: fc.nat(),
      isCoarse: fc.boolean(),
    });
    fc.assert(
      fc.property(cases, ({ count, dimensions, seed, isCoarse }) => {
        const random = seeded(seed);
        const pairs = new PairwiseDistances(count, dimensions, measure);
        for (let d = 0; d < dimensions; d++)
          for (let i = 0; i < pairs.stride; i++)
            pairs.points[d * pairs.stride + i] = isCoarse
              ? Math.floor(3 * random()) - 1
              : 4 * random() - 2;
        const sums = new Float64Array(count);
        // Twice: nothing of the first time is left.
        pairs.sums(sums);
        pairs.sums(sums);
        for (let i = 0; i < count; i++) {
          let expected = 0;
          for (let j = 0; j < count; j++)
            expected += distance(pairs.points, pairs.stride, i, j, dimensions, measure);
          expect(Math.abs(sums[i]! - expected)).toBeLessThan(1e-4 * Math.max(1, expected));
        }
      }),
    );
  });
});

function distance(
  points: Float32Array,
  stride: number,
  i: number,
  j: number,
  dimensions: number,
  measure: DistanceMeasure,
): number {
  const parts = Array.from({ length: dimensions }, (_, d) =>
    Math.abs(points[d * stride + i]! - points[d * stride + j]!),
  );
  if (measure === "manhattan") return parts.reduce((sum, part) => sum + part, 0);
  if (measure === "chebyshev") return Math.max(...parts);
  return Math.hypot(...parts);
}
