import { describe, expect, test } from "vitest";
import { testRanks, type TestJob } from "../../../test/support/methods/ranks.ts";
import { timeBreakdowns } from "./time-breakdown.ts";
import { leadsOf } from "./waited-for.ts";

/** The same every time, between -1 and 1. */
const chance = (...of: number[]): number => {
  const value =
    Math.sin(of.reduce((sum, one, k) => sum + one * (12.9898 + 65.17 * k), 1)) * 43758.5;
  return 2 * (value - Math.floor(value)) - 1;
};
/** Iterations of a shared machine: all ranks wait a third longer or shorter. */
const common = (iteration: number): number => 30 * chance(iteration);
const suspectsOf = (job: TestJob) => {
  const { cut, accounts } = testRanks(job);
  return leadsOf(cut, accounts).suspects;
};
const healthy: TestJob = {
  ranks: 8,
  iterations: 50,
  iterationMs: (n) => 100 + common(n),
  stayMs: (rank, n, nth) => 12 + common(n) / 4 + chance(rank, n, nth),
};
/** Rank 5 takes so much longer: all others wait for it in the first collective. */
const slowed = (ms: number, from: number, to = Infinity): TestJob => ({
  ...healthy,
  iterationMs: (n) => healthy.iterationMs(n) + (n >= from && n <= to ? ms : 0),
  stayMs: (rank, n, nth) =>
    healthy.stayMs(rank, n, nth) + (nth === 0 && rank !== 5 && n >= from && n <= to ? ms : 0),
});

test("ranks are even in a healthy job, and not where one of them is waited for, accused or not", () => {
  const isEven = (job: TestJob): boolean => {
    const { cut, accounts } = testRanks(job);
    return leadsOf(cut, accounts).isEven;
  };
  expect(isEven(healthy)).toBe(true);
  expect(isEven(slowed(80, 0))).toBe(false);
});

describe("whom the others wait for", () => {
  test("is nobody in a healthy job, whatever the noise that all share", () => {
    expect(suspectsOf(healthy)).toEqual([]);
  });

  test.each([10, 20, 80])("is the rank that is slower by %i ms of 100, since when it is", (ms) => {
    const found = suspectsOf(slowed(ms, 26));
    expect(found.map(({ rank, kind }) => [rank, kind])).toEqual([[5, "slower"]]);
    expect(Math.abs(found[0]!.iteration! - 26)).toBeLessThanOrEqual(1);
    expect(found[0]!.afterMs - found[0]!.beforeMs).toBeGreaterThan(0.7 * ms);
  });

  test("is found where the record holds nothing else", () => {
    const found = suspectsOf(slowed(20, 0));
    expect(found.map(({ rank, kind }) => [rank, kind])).toEqual([[5, "always"]]);
  });

  test("is found although the first iterations were longer, as those of compiled programs are", () => {
    const job = slowed(20, 26);
    const warmUpMs = (n: number): number => 4 * Math.max(0, 26 - n);
    const found = suspectsOf({ ...job, iterationMs: (n) => job.iterationMs(n) + warmUpMs(n) });
    expect(found.map(({ rank }) => rank)).toEqual([5]);
  });

  test("is found although the others wait for another one in a few iterations", () => {
    const job = slowed(20, 26);
    const found = suspectsOf({
      ...job,
      stayMs: (rank, n, nth) =>
        job.stayMs(rank, n, nth) + (nth === 1 && rank !== 3 && n > 46 ? 18 : 0),
    });
    expect(found.map(({ rank }) => rank)).toEqual([5]);
  });

  test("may be two", () => {
    const both = slowed(30, 26);
    const found = suspectsOf({
      ...both,
      stayMs: (rank, n, nth) => both.stayMs(rank === 2 ? 5 : rank, n, nth),
    });
    expect(found.map(({ rank }) => rank).toSorted((a, b) => a - b)).toEqual([2, 5]);
  });

  test("is nobody where iterations do not get longer: a rank that uses up its slack slows nobody down", () => {
    const job = slowed(20, 26);
    expect(suspectsOf({ ...job, iterationMs: () => 100 })).toEqual([]);
  });

  test("is nobody where ranks take turns", () => {
    const uneven: TestJob = {
      ...healthy,
      stayMs: (rank, n, nth) => healthy.stayMs(rank, n, nth) + (n % 8 === rank ? 0 : 10),
    };
    expect(suspectsOf(uneven)).toEqual([]);
  });

  test("is asked of whoever is accused otherwise", () => {
    const { cut, accounts } = testRanks(slowed(20, 26));
    const leads = leadsOf(cut, accounts);
    const slow = Array.from({ length: 25 }, (_, i) => 25 + i);
    expect([5, 2].map((rank) => leads.isWaitedFor(rank, slow))).toEqual([true, false]);
  });

  // Rings hold more iterations of ranks that call less, such as the ends of a pipeline.
  test("is not who is on record before the others, though what is usual changes with them", () => {
    const job = slowed(40, 26);
    const stayMs: TestJob["stayMs"] = (rank, n, nth) =>
      job.stayMs(rank, n, nth) - (rank < 2 ? 5 : 0);
    const { cut, accounts } = testRanks({ ...job, stayMs });
    const late = cut.map((one) => {
      const from = one.rank < 2 ? 0 : 25;
      const rest = <T extends Float64Array | Int32Array>(values: T): T => values.slice(from) as T;
      const { iteration, durationMs, startMs } = one;
      return {
        ...one,
        from: rest(one.from),
        to: rest(one.to),
        iteration: rest(iteration),
        durationMs: rest(durationMs),
        startMs: rest(startMs),
      };
    });
    for (const { rank } of late.filter((one) => one.rank >= 2)) {
      const account = accounts.get(rank)!;
      const [iteration, totalMs] = [account.iteration.slice(25), account.totalMs.slice(25)];
      const [ownMs, issueMs] = [account.ownMs.slice(25), account.issueMs.slice(25)];
      accounts.set(rank, { ...account, iteration, totalMs, ownMs, issueMs });
    }
    expect(leadsOf(late, accounts).suspects.map(({ rank }) => rank)).toEqual([5]);
  });

  test("is not a rank for what it does when the others' records have ended", () => {
    const { cut } = testRanks(slowed(80, 26));
    const shorter = cut.map((one) =>
      one.rank === 5
        ? one
        : {
            ...one,
            iteration: one.iteration.slice(0, 28),
            from: one.from.slice(0, 28),
            to: one.to.slice(0, 28),
            durationMs: one.durationMs.slice(0, 28),
            startMs: one.startMs.slice(0, 28),
          },
    );
    const slow = Array.from({ length: 25 }, (_, k) => 25 + k);
    const isWaitedFor = (ranks: typeof cut): boolean =>
      leadsOf(ranks, timeBreakdowns(ranks, [])).isWaitedFor(5, slow);
    expect(isWaitedFor(cut)).toBe(true);
    expect(isWaitedFor(shorter)).toBe(false);
  });
});
