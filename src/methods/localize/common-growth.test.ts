import { expect, test } from "vitest";
import { seeded } from "../../base/random.ts";
import type { Rank } from "../../model/ids.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";
import { ownTimeSuspects } from "./own-time.ts";
import type { Culprit, Progress } from "./progressive/progressive.ts";
import { locate } from "./slow-ranks.ts";

const FROM = 17;
const RANKS = Array.from({ length: 16 }, (_, rank) => rank);

/** Two kinds of GPUs; from an iteration on all take so many times as long, and one of them longer still. */
function accounts(
  seed: number,
  factor: number,
  slowRank = -1,
  slower = 1,
): Map<Rank, TimeBreakdown> {
  const random = seeded(seed);
  return new Map(
    RANKS.map((rank) => {
      const own = (iteration: number): number =>
        (rank < 8 ? 800 : 1100) *
        (iteration < FROM ? 1 : factor * (rank === slowRank ? slower : 1)) *
        (0.98 + 0.04 * random());
      const iteration = Float64Array.from({ length: 24 }, (_, i) => i + 3);
      const account: TimeBreakdown = {
        iteration,
        totalMs: iteration.map((number) => 1300 * (number < FROM ? 1 : factor * slower)),
        ownMs: iteration.map(own),
        issueMs: new Float64Array(24).fill(3),
        insideMs: new Map(),
        program: rank,
      };
      return [rank, account];
    }),
  );
}

const SEEDS = Array.from({ length: 20 }, (_, i) => i + 1);
const changed = (...of: Parameters<typeof accounts>): Rank[] =>
  ownTimeSuspects(accounts(...of)).flatMap(({ kind, rank }) => (kind === "always" ? [] : [rank]));

test("of two kinds of GPUs that all become slower by the same factor none became slower than the others", () => {
  expect(SEEDS.flatMap((seed) => changed(seed, 1.3))).toEqual([]);
});

test.each([2, 11])("rank %i that becomes slower by more than all did is found", (rank) => {
  for (const seed of SEEDS) expect(changed(seed, 1.2, rank, 1.4)).toEqual([rank]);
});

const slow = { isSlow: (n: number) => n >= FROM, from: FROM, until: null, isLasting: true };

function located(factor: number, ends: readonly Culprit[], network: Culprit | null = null) {
  const arrivals = ends.flatMap(({ votes }) => Array.from({ length: votes }));
  const progress = { ends, network, arrivals } as unknown as Progress;
  return locate(progress, [], accounts(1, factor), slow, 330, () => false, true);
}

function end(cause: Culprit["cause"], ranks: readonly Rank[], growthMs: number, usualMs: number) {
  const ratio = (usualMs + growthMs) / usualMs;
  const votes = cause === "network" ? 0 : 1;
  return { cause, ranks, device: null, votes, pivots: 5, growthMs, ratio, isSignificant: true };
}

test("searches that end at ranks which grew as all did name none of them", () => {
  const ends = [8, 9, 12, 14, 15].map((rank) => end("compute", [rank], 90, 100));
  expect(located(1.3, ends).ranks).toEqual([]);
});

test("communication that takes longer by the factor by which all compute longer is no slow network", () => {
  const network = (growthMs: number): Culprit => end("network", RANKS, growthMs, 200);
  expect(located(1.5, [], network(100)).network).toBeNull();
  expect(located(1.5, [], network(400)).network).not.toBeNull();
  expect(located(1, [], network(100)).network).not.toBeNull();
});
