import { expect, test } from "vitest";
import { seeded } from "../../base/random.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";
import { ownTimeSuspects } from "./own-time.ts";

/** A ring of a few thousand entries holds so little of a large model. */
const ITERATIONS = 3;

function accounts(slowRank: number, slower: number): Map<number, TimeBreakdown> {
  const random = seeded(5);
  return new Map(
    Array.from({ length: 16 }, (_, rank) => {
      const own = (): number => 300 * (rank === slowRank ? slower : 1) * (0.99 + 0.02 * random());
      const account: TimeBreakdown = {
        iteration: Float64Array.from({ length: ITERATIONS }, (__, i) => 200 + i),
        totalMs: new Float64Array(ITERATIONS).fill(1000),
        ownMs: Float64Array.from({ length: ITERATIONS }, own),
        issueMs: new Float64Array(ITERATIONS).fill(3),
        insideMs: new Map(),
        program: 1,
      };
      return [rank, account];
    }),
  );
}

test("three iterations are enough to see who is slower than fifteen peers", () => {
  expect(ownTimeSuspects(accounts(7, 1.5))).toMatchObject([{ rank: 7, kind: "always" }]);
});

test("and to accuse nobody of a job in which nobody is", () => {
  expect(ownTimeSuspects(accounts(7, 1))).toEqual([]);
});
