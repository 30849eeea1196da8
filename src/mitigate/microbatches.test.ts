import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allocateMicroBatches, type MicroBatchQuestion } from "./microbatches.ts";

/** The smallest makespan over all allocations, by trying each. */
function bruteForce({ timesMs, total, fixedMs, multipleOf = 1 }: MicroBatchQuestion): number {
  const replicas = timesMs.length;
  const best = (i: number, left: number): number => {
    const cost = (count: number): number => (fixedMs?.[i] ?? 0) + count * timesMs[i]!;
    if (i === replicas - 1) return cost(left);
    let least = Infinity;
    for (
      let count = multipleOf;
      count <= left - multipleOf * (replicas - 1 - i);
      count += multipleOf
    )
      least = Math.min(least, Math.max(cost(count), best(i + 1, left - count)));
    return least;
  };
  return best(0, total);
}

/** One bundle after the other, without a head start. */
function plainGreedy({ timesMs, total, fixedMs, multipleOf = 1 }: MicroBatchQuestion): number {
  const counts = Array.from(timesMs, () => multipleOf);
  const cost = (i: number, count: number): number => (fixedMs?.[i] ?? 0) + count * timesMs[i]!;
  for (let left = total - multipleOf * counts.length; left > 0; left -= multipleOf) {
    let least = 0;
    for (let i = 1; i < counts.length; i++)
      if (cost(i, counts[i]! + multipleOf) < cost(least, counts[least]! + multipleOf)) least = i;
    counts[least]! += multipleOf;
  }
  return Math.max(...counts.map((count, i) => cost(i, count)));
}

/** Times of very different size, many of them equal. */
const time = fc.oneof(
  fc.constantFrom(1, 1, 1.7, 2, 3),
  fc.double({ min: 0.01, max: 50, noNaN: true }),
);

function question(replicasAtMost: number, bundlesAtMost: number): fc.Arbitrary<MicroBatchQuestion> {
  return fc
    .record({
      replicas: fc.array(fc.tuple(time, fc.oneof(fc.constant(0), time)), {
        minLength: 1,
        maxLength: replicasAtMost,
      }),
      more: fc.nat(bundlesAtMost),
      multipleOf: fc.constantFrom(1, 1, 2, 4),
      withFixed: fc.boolean(),
    })
    .map(({ replicas, more, multipleOf, withFixed }) => ({
      timesMs: replicas.map(([ms]) => ms),
      ...(withFixed ? { fixedMs: replicas.map(([, ms]) => ms) } : {}),
      total: (replicas.length + more) * multipleOf,
      multipleOf,
    }));
}

describe("sharing micro-batches out", () => {
  test("no allocation is faster", () => {
    fc.assert(
      fc.property(question(5, 14), (asked) => {
        expect(allocateMicroBatches(asked).makespan).toBeCloseTo(bruteForce(asked), 9);
      }),
      { numRuns: 500, seed: 9 },
    );
  });

  test("many replicas: as fast as one by one, every replica has its share, and the bound holds", () => {
    fc.assert(
      fc.property(question(60, 900), (asked) => {
        const { allocation, makespan, lowerBound, weights } = allocateMicroBatches(asked);
        const { multipleOf = 1, total, timesMs, fixedMs } = asked;
        expect(makespan).toBeCloseTo(plainGreedy(asked), 7);
        expect(allocation.reduce((sum, count) => sum + count, 0)).toBe(total);
        for (const count of allocation) {
          expect(count).toBeGreaterThanOrEqual(multipleOf);
          expect(count % multipleOf).toBe(0);
        }
        const spans = allocation.map((count, i) => (fixedMs?.[i] ?? 0) + count * timesMs[i]!);
        expect(makespan).toBeCloseTo(Math.max(...spans), 9);
        expect(lowerBound).toBeLessThanOrEqual(makespan);
        // At the bound, fractions and single bundles together hold just all of them.
        const held = Array.from(timesMs).reduce(
          (sum, t, i) => sum + Math.max(multipleOf, (lowerBound - (fixedMs?.[i] ?? 0)) / t),
          0,
        );
        const slowest = Math.max(
          ...Array.from(timesMs, (t, i) => (fixedMs?.[i] ?? 0) + multipleOf * t),
        );
        if (lowerBound > slowest * (1 + 1e-9)) expect(held / total).toBeCloseTo(1, 6);
        else expect(lowerBound).toBeCloseTo(slowest, 6);
        // A bundle more or less is all that whole numbers cost.
        expect(makespan).toBeLessThanOrEqual(
          lowerBound + multipleOf * Math.max(...Array.from(timesMs)) * (1 + 1e-9),
        );
        expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(allocation.length, 9);
      }),
      { numRuns: 300, seed: 10 },
    );
  });

  test("weights give the mean over all micro-batches, whoever computed them", () => {
    const { allocation, weights } = allocateMicroBatches({ timesMs: [1, 1, 1.7], total: 48 });
    const gradients = allocation.map((count, i) =>
      Array.from({ length: count }, (_, k) => 10 * i + k),
    );
    const means = gradients.map((own) => own.reduce((a, b) => a + b, 0) / own.length);
    const averaged = means.reduce((sum, mean, i) => sum + mean * weights[i]!, 0) / means.length;
    const all = gradients.flat();
    expect(averaged).toBeCloseTo(all.reduce((a, b) => a + b, 0) / all.length, 9);
  });

  test("equal replicas get equal shares, a slow one fewer", () => {
    expect(allocateMicroBatches({ timesMs: [2, 2, 2, 2], total: 32 }).allocation).toEqual([
      8, 8, 8, 8,
    ]);
    expect(allocateMicroBatches({ timesMs: [1, 1, 1, 3], total: 40 })).toMatchObject({
      allocation: [12, 12, 12, 4],
      makespan: 12,
      lowerBound: 12,
    });
    // One so slow that its single micro-batch decides: the others still share alike.
    expect(allocateMicroBatches({ timesMs: [1, 1, 1, 100], total: 40 })).toMatchObject({
      allocation: [13, 13, 13, 1],
      makespan: 100,
      lowerBound: 100,
    });
  });

  test.each<[string, MicroBatchQuestion, RegExp]>([
    ["fewer than replicas", { timesMs: [1, 1, 1], total: 2 }, /2 micro-batches are too few for 3/],
    ["no multiple", { timesMs: [1, 1], total: 7, multipleOf: 2 }, /cannot be distributed/],
    ["too few multiples", { timesMs: [1, 1], total: 4, multipleOf: 4 }, /too few for 2 replicas/],
    ["a time of zero", { timesMs: [1, 0], total: 4 }, /the time of replica 1 is 0/],
    ["a negative time", { timesMs: [-1, 1], total: 4 }, /the time of replica 0 is -1/],
    ["no number", { timesMs: [1, Number.NaN], total: 4 }, /the time of replica 1 is NaN/],
    ["endless", { timesMs: [1, Infinity], total: 4 }, /the time of replica 1 is Infinity/],
    [
      "times without end",
      { timesMs: [1e308, 1e308], total: 8 },
      /the time of replica 0 is 1e\+308/,
    ],
    [
      "too many",
      { timesMs: [1, 1], total: 2 ** 32 },
      /4294967296 is not a number of micro-batches/,
    ],
    ["nobody", { timesMs: [], total: 4 }, /there is no replica/],
    ["half a micro-batch", { timesMs: [1], total: 1.5 }, /1.5 is not a number of micro-batches/],
    ["negative fixed time", { timesMs: [1], fixedMs: [-1], total: 1 }, /fixed time of replica 0/],
    ["fixed times of others", { timesMs: [1], fixedMs: [1, 2], total: 1 }, /2 fixed times for 1/],
  ])("%s is refused in one line", (_, asked, message) => {
    expect(() => allocateMicroBatches(asked)).toThrow(message);
  });
});
