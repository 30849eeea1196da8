import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../base/random.ts";
import { PairwiseDistances } from "./pairwise-distances.ts";

describe("sums of Euclidean distances", () => {
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
        const pairs = new PairwiseDistances(count, dimensions);
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
            expected += distance(pairs.points, pairs.stride, i, j, dimensions);
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
): number {
  const parts = Array.from({ length: dimensions }, (_, d) =>
    Math.abs(points[d * stride + i]! - points[d * stride + j]!),
  );
  return Math.hypot(...parts);
}
