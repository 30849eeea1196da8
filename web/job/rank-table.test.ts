import { describe, expect, test } from "vitest";
import type { Ranks } from "../live/api.ts";
import { memberWords } from "./rank-ranges.ts";
import { fill, rankTable } from "./rank-table.ts";

const ranks: Ranks = {
  layout: "a",
  groups: [],
  rank: [4, 9],
  machine: ["n".repeat(1_000_000), null],
  gpu: [0, null],
  stage: [1, 2],
  pipeline: [null, null],
  data: [null, null],
  tensor: [null, null],
  iteration: [7, null],
  durationMs: [100, null],
  ownMs: [50, 40],
  waitMs: [50, 60],
  lateMs: [10, 0],
  temperature: [null, 61],
  state: ["running", "a word of a newer service"],
};

describe("the table of ranks", () => {
  const table = rankTable(ranks);

  test("holds what is unknown as such", () => {
    expect(table.gpu[1]).toBe(-1);
    expect(table.durationMs[1]).toBeNaN();
    expect(table.machine[1]).toBe("");
    expect(table.state[1]).toBe(4);
    expect(table.rowOf.get(9)).toBe(1);
  });

  test("cuts a name of a megabyte", () => {
    expect(table.machine[0]!.length).toBeLessThan(100);
  });

  test("takes the stage where no group tells the place in the pipeline", () => {
    expect([...table.pipeline]).toEqual([1, 2]);
  });

  test("takes new values of the same layout, and refuses those of another", () => {
    expect(fill(table, { ...ranks, lateMs: [11, 12] })).toBe(true);
    expect([...table.lateMs]).toEqual([11, 12]);
    expect(fill(table, { ...ranks, layout: "b" })).toBe(false);
    expect(fill(table, { ...ranks, durationMs: [1, 2, 3] })).toBe(false);
  });
});

test("members of a group are said in few words", () => {
  expect(memberWords([3, 1, 2, 0])).toBe("0–3");
  expect(memberWords([0, 8, 16, 24])).toBe("0, 8 … 24 (every 8)");
  expect(memberWords([0, 8, 17])).toBe("0, 8, 17");
});
