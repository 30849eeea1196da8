import { describe, expect, it } from "vitest";
import { dtwDistance } from "./dtw.ts";

describe("warping distance of symbols", () => {
  it("is 0 for equal sequences, and for repetitions", () => {
    expect(dtwDistance([1, 2, 3], [1, 2, 3])).toBe(0);
    expect(dtwDistance([1, 2, 2, 2, 3], [1, 2, 3])).toBe(0);
  });

  it("is 1 where nothing is shared", () => {
    expect(dtwDistance([1, 1, 1], [2, 2])).toBe(1);
    expect(dtwDistance([], [2])).toBe(1);
    expect(dtwDistance([], [])).toBe(0);
  });

  it("counts what was added, in both directions", () => {
    expect(dtwDistance([1, 2, 3, 9], [1, 2, 3])).toBeCloseTo(1 / 4);
    expect(dtwDistance([1, 2, 3], [1, 2, 3, 9])).toBeCloseTo(1 / 4);
    expect(dtwDistance([1, 8, 9, 3], [1, 3])).toBeCloseTo(2 / 4);
  });
});
