import { expect, test } from "vitest";
import { lostToLateCalls } from "./last-to-call.ts";
import { testRanks, type TestJob } from "../../../test/support/methods/ranks.ts";

const even: TestJob = {
  ranks: 4,
  iterations: 12,
  iterationMs: () => 100,
  stayMs: (rank) => 5 + rank,
};
const lost = (job: TestJob): number[] =>
  lostToLateCalls(testRanks(job).cut, new Map()).map((ms) => Math.round(ms[8]!));

test("nothing is lost where all call together", () => {
  expect(lost(even)).toEqual([0, 0, 0, 0]);
});

test("what the others wait for a rank that calls late is lost to it", () => {
  const late = { ...even, lateMs: (rank: number) => (rank === 2 ? 30 : 0) };
  const waiting = { ...late, stayMs: (rank: number) => (rank === 2 ? 5 : 35) };
  expect(lost(waiting)).toEqual([0, 0, 30, 0]);
});

test("a late call that nobody waits for costs nothing: its CPU waited for its own GPU", () => {
  const late = { ...even, lateMs: (rank: number) => (rank === 2 ? 30 : 0) };
  expect(lost(late)).toEqual([0, 0, 0, 0]);
});

test("neither does what they wait without a late call: a slow GPU", () => {
  const slowGpu = { ...even, stayMs: (rank: number) => (rank === 2 ? 5 : 35) };
  expect(lost(slowGpu)).toEqual([0, 0, 0, 0]);
});

test("two that are late are told apart by the one before: what they share is lost to neither", () => {
  const both = { ...even, lateMs: (rank: number) => (rank >= 2 ? 30 + rank : 0) };
  const waiting = { ...both, stayMs: (rank: number) => (rank >= 2 ? 5 : 35) };
  expect(Math.max(...lost(waiting))).toBeLessThanOrEqual(1);
});
