import { describe, expect, it } from "vitest";
import { jitter, largestRise, levelWithin, type Bounds } from "./rise.ts";

/** A string is a bound that is not tight, null a missing point. */
function bounds(points: readonly (number | string | null)[]): Bounds {
  return {
    value: Float64Array.from(points, (point) => (point === null ? NaN : Number(point))),
    tight: Uint8Array.from(points, (point) => (typeof point === "number" ? 1 : 0)),
  };
}

describe("a rise seen through bounds", () => {
  it("begins at the first of three points above, and lasts where none falls back", () => {
    expect(largestRise(bounds([2, 3, 2, 2, 60, 62, 61, 61]), 10)).toEqual({
      start: 4,
      end: 8,
      before: 2,
      after: 61,
    });
  });

  it("is believed only from three points, and only by tight ones", () => {
    expect(largestRise(bounds([2, 2, 2, 60, 60]), 10)).toBe(null);
    expect(largestRise(bounds([2, 2, 60, 2, 60, 60, 2]), 10)).toBe(null);
    expect(largestRise(bounds([2, 2, "60", "60", "60", "60"]), 10)).toBe(null);
    expect(largestRise(bounds([2, 2, "60", 60, "60", 60, 60]), 10)?.start).toBe(3);
    expect(largestRise(bounds([2, 2, 11, 11, 11]), 10)).toBe(null);
  });

  it("is measured from tight points, or from the least bound where there are none", () => {
    expect(largestRise(bounds([2, "90", 3, "80", 60, 60, 60]), 10)?.before).toBe(2.5);
    expect(largestRise(bounds(["40", "5", "30", 60, 60, 60]), 10)?.before).toBe(5);
  });

  it("skips what is missing, bears one point below, and ends with two", () => {
    const found = largestRise(bounds([null, 2, null, 2, 50, null, 51, 2, 52, 53, 2, 2, 2]), 10);
    expect(found).toBe(null);
    expect(largestRise(bounds([2, 2, 50, null, 51, 52, 2, 53, 2, 2, 2]), 10)).toMatchObject({
      start: 2,
      end: 8,
    });
  });

  it("is the one that cost most where there are several, whatever the sign of the values", () => {
    const found = largestRise(
      bounds([-100, -100, -60, -60, -60, -100, -100, -40, -40, -40, -40, -100, -100]),
      10,
    );
    expect(found).toEqual({ start: 7, end: 11, before: -100, after: -40 });
  });

  it("is nothing a slow warm-up looks like, and nothing in no points", () => {
    expect(largestRise(bounds([900, 80, 3, 2, 2, 3, 2]), 5)).toBe(null);
    expect(largestRise(bounds([]), 5)).toBe(null);
  });

  it("does not count as jitter", () => {
    expect(jitter(bounds([2, 3, 2, 3, 2, 90, 91, 90, 91]))).toBeCloseTo(1.05, 1);
    expect(jitter(bounds([2, "70", 2, "80"]))).toBe(NaN);
  });

  it("has a level within a range, if anything is known there", () => {
    expect(levelWithin(bounds([1, 2, 3, "99", 50]), 0, 4)).toBe(2);
    expect(levelWithin(bounds([1, null, null]), 1, 3)).toBe(NaN);
  });
});
