import { describe, expect, test } from "vitest";
import { UserError } from "../../base/errors.ts";
import { completeSpec, type ClusterSpec } from "./spec.ts";

/** What a refused layout says: message and hint in one line. */
function refusal(given: Partial<ClusterSpec>): string {
  try {
    completeSpec(given);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(2);
    return `${(error as UserError).message} (${(error as UserError).hint})`;
  }
  return "accepted";
}

const shapeOf = (given: Partial<ClusterSpec>): number[] => {
  const { gpus, tp, cp, dp, pp } = completeSpec(given);
  return [gpus, tp, cp, dp, pp];
};

describe("a layout", () => {
  test("follows from what is given", () => {
    expect(shapeOf({})).toEqual([16, 2, 1, 4, 2]);
    expect(shapeOf({ tp: 4, pp: 2, dp: 3, cp: 2 })).toEqual([48, 4, 2, 3, 2]);
    expect(shapeOf({ gpus: 64 })).toEqual([64, 2, 1, 16, 2]);
    expect(shapeOf({ gpus: 64, tp: 8, pp: 4 })).toEqual([64, 8, 1, 2, 4]);
    expect(shapeOf({ gpus: 7 })).toEqual([7, 1, 1, 7, 1]);
    expect(shapeOf({ gpus: 1 })).toEqual([1, 1, 1, 1, 1]);
  });

  test("is refused where its dimensions do not make the number of GPUs", () => {
    expect(refusal({ gpus: 16, tp: 2, pp: 2, dp: 2 })).toMatch(
      /tp 2 × cp 1 × dp 2 × pp 2 is 8, not 16 GPUs .*omit --dp/,
    );
    expect(refusal({ gpus: 5, tp: 4 })).toMatch(/5 GPUs cannot be .*divisors are 1, 5\b/);
    expect(refusal({ gpus: 10, tp: 4 })).toMatch(/10 GPUs cannot be .*divisors are 1, 2, 5, 10/);
    expect(refusal({ gpus: 12, tp: 2, pp: 4 })).toMatch(/12 GPUs cannot be/);
  });

  test("is refused where a number is none", () => {
    expect(refusal({ tp: 0 })).toMatch(/--tp must be a whole number of at least 1, not 0/);
    expect(refusal({ gpus: 2.5 })).toMatch(/--gpus must be a whole number .*2\.5/);
    expect(refusal({ iterations: -1 })).toMatch(/--iterations must be .*at least 1, not -1/);
    expect(refusal({ microBatches: NaN })).toMatch(/--micro-batches must be/);
  });

  test("is refused with experts that do not divide the replicas", () => {
    expect(refusal({ tp: 1, pp: 1, dp: 6, ep: 4 })).toMatch(
      /--ep 4 does not divide dp × cp = 6 \(allowed: 1, 2, 3, 6\)/,
    );
  });

  test("is refused where the schedule does not fit", () => {
    expect(refusal({ schedule: "zigzag" as "1f1b" })).toMatch(
      /zigzag is unknown \(allowed: 1f1b, interleaved, gpipe\)/,
    );
    expect(refusal({ pp: 1, schedule: "interleaved" })).toMatch(/needs --pp of at least 2/);
    expect(refusal({ pp: 4, schedule: "interleaved", microBatches: 6 })).toMatch(
      /multiple of --pp \(allowed: multiples of 4\)/,
    );
  });

  test("gets a layer a chunk where it has fewer", () => {
    const spec = completeSpec({ schedule: "interleaved", chunks: 3, layersPerStage: 1 });
    expect(spec.layersPerStage).toBe(3);
  });
});
