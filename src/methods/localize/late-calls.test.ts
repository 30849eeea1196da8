import { expect, test } from "vitest";
import { lateCalls } from "./late-calls.ts";
import { testRanks } from "../../../test/support/methods/ranks.ts";

const SLOW_MS = 40;
const isSlow = (n: number): boolean => n > 10;
const before = Array.from({ length: 10 }, (_, i) => i);
const since = before.map((i) => i + 10);

/** Rank 3 keeps the others waiting since iteration 11; its calls come so much later. A clock may be ahead by a little. */
function callsOf(lateMs: number, hasBefore = true, ahead = { rank: 0, ms: 0 }) {
  const { cut } = testRanks({
    ranks: 4,
    iterations: 20,
    iterationMs: () => 100,
    stayMs: (rank, n, nth) => 5 + (isSlow(n) && nth === 0 && rank !== 3 ? SLOW_MS : 0),
    lateMs: (rank, n, nth) =>
      (isSlow(n) && rank === 3 && nth === 0 ? lateMs : 0) + (rank === ahead.rank ? ahead.ms : 0),
  });
  return lateCalls(cut[3]!, cut, since, hasBefore ? before : [], SLOW_MS, new Map());
}

test("calls that come late by what the others wait explain it: the CPU is slow", () => {
  expect(callsOf(45)).toMatchObject({ explained: 1, firstMs: 45 });
  expect(callsOf(45, false)).toMatchObject({ explained: 1 });
});

test("calls that come with the others', or late by less than they wait, do not: the GPU is slow", () => {
  expect(callsOf(0)!.explained).toBe(0);
  expect(callsOf(30)!.explained).toBe(0);
});

test("a call that came in time and did not begin waited for the rank's own GPU; a late one found it idle", () => {
  expect(callsOf(0)!.behind).toBeCloseTo(1, 1);
  expect(callsOf(30)!.behind).toBeCloseTo(0.25, 1);
  expect(callsOf(45)!.behind).toBe(0);
});

test("a clock that is ahead by more than calls are late makes no slow GPU of a slow CPU", () => {
  for (const rank of [1, 3]) {
    const ahead = { rank, ms: rank === 3 ? -60 : 60 };
    expect(callsOf(45, true, ahead)).toMatchObject({ explained: 1, behind: 0 });
    expect(callsOf(45, false, ahead)!.behind).toBeNull();
  }
});

test("where the others hardly wait in collectives nothing is told", () => {
  const { cut } = testRanks({ ranks: 4, iterations: 20, iterationMs: () => 100, stayMs: () => 5 });
  expect(lateCalls(cut[3]!, cut, since, before, SLOW_MS, new Map())).toBeNull();
});
