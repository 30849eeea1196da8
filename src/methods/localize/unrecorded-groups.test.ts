import { describe, expect, test } from "vitest";
import type { Cause } from "../../model/cause.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { SlowFinding } from "./slow-findings.ts";
import { besideUnrecorded } from "./unrecorded-groups.ts";

const WORLD = [0, 1, 2, 3];
const groups = [WORLD, [0, 1], [2, 3]].map(
  (ranks, id) => ({ id, ranks }) as Partial<Group> as Group,
);
/** Operators are recorded in these groups. */
const recordedIn = (...ids: number[]): RankOperators[] => [
  {
    ops: { group: Int32Array.from(ids, (_, k) => k) },
    groupIds: Int32Array.from(ids),
  } as unknown as RankOperators,
];
const slow = (rank: number, cause: Cause): SlowFinding =>
  ({
    weight: 0.9,
    accuses: [{ type: "rank", ranks: [rank], cause, weight: 0.9 }],
    clears: [],
  }) as unknown as SlowFinding;
const told = (findings: readonly SlowFinding[], cut: readonly RankOperators[]) =>
  besideUnrecorded(findings, groups, WORLD.length, cut).map(({ accuses, clears, weight }) => [
    accuses[0]!.ranks[0],
    clears,
    weight,
  ]);

describe("members of a group that leaves no records", () => {
  test("only wait, where their GPU looks slow beside a member whose CPU is late", () => {
    const both = [slow(2, "gpu-slow"), slow(3, "cpu-stall")];
    expect(told(both, recordedIn(0))).toEqual([[3, [2], 0.9]]);
  });

  test("are all said, less surely, where only GPUs look slow", () => {
    const both = [slow(2, "gpu-slow"), slow(3, "gpu-slow")];
    expect(told(both, recordedIn(0))).toEqual([
      [2, [], 0.45],
      [3, [], 0.45],
    ]);
  });

  test("are judged as any others where the group's operators are recorded, or where one alone is slow", () => {
    const both = [slow(2, "gpu-slow"), slow(3, "gpu-slow")];
    expect(told(both, recordedIn(0, 2))).toEqual([
      [2, [], 0.9],
      [3, [], 0.9],
    ]);
    const apart = [slow(1, "cpu-stall"), slow(2, "gpu-slow")];
    expect(told(apart, recordedIn(0))).toEqual([
      [1, [], 0.9],
      [2, [], 0.9],
    ]);
  });
});
