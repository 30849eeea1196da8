import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  append,
  inOtherRun,
  isThinned,
  pointsOf,
  thinned,
  wantsLog,
  withFiner,
} from "./iteration-points.ts";

const rows = (durationMs: readonly number[], fromMs = 0) => ({
  iteration: durationMs.map((_, at) => fromMs + at),
  endMs: durationMs.map((_, at) => (fromMs + at) * 1000),
  durationMs,
});

describe("the points of the chart", () => {
  test("a part in full takes the place of what was left of it", () => {
    const coarse = {
      iteration: [0, 4, 8, 12],
      endMs: [0, 4000, 8000, 12_000],
      durationMs: [1, 1, 1, 1],
    };
    expect(isThinned(coarse)).toBe(true);
    const all = withFiner(coarse, pointsOf(rows([2, 2, 2, 2, 2], 3)));
    expect(all.iteration).toEqual([0, 3, 4, 5, 6, 7, 8, 12]);
    expect(all.durationMs).toEqual([1, 2, 2, 2, 2, 2, 1, 1]);
    expect(withFiner(coarse, pointsOf(rows([])))).toBe(coarse);
    expect(isThinned(pointsOf(rows([1, 2, 3])))).toBe(false);
  });

  test("another run is laid over by the numbers of iterations", () => {
    const points = pointsOf(rows([10, 11, 12], 5));
    expect(inOtherRun(points, pointsOf(rows([20, 21], 6)))).toEqual([null, 20, 21]);
  });

  test("what is not newer than the last one is left out", () => {
    const points = pointsOf(rows([10, 11, 12]));
    expect(append(points, rows([99, 13, 14], 2))).toBe(true);
    expect(points.durationMs).toEqual([10, 11, 12, 13, 14]);
    expect(append(points, rows([10]))).toBe(false);
  });

  test("what is no time and no duration is left out", () => {
    const bad = { iteration: [1, 2, 3], endMs: [Number.NaN, 2, 3], durationMs: [5, -1, 7] };
    expect(pointsOf(bad).durationMs).toEqual([7]);
  });

  test("few points stay as they are", () => {
    const points = pointsOf(rows([1, 2, 3]));
    expect(thinned(points, 10, 5)).toBe(points);
  });

  test("a spike of one iteration is still there after thinning out again and again", () => {
    let points = pointsOf(
      rows(Array.from({ length: 500 }, (_, at) => (at === 123 ? 9000 : 100 + (at % 7)))),
    );
    for (let day = 1; day < 40; day++) {
      append(
        points,
        rows(
          Array.from({ length: 500 }, () => 100),
          day * 500,
        ),
      );
      points = thinned(points, 400, 100);
      expect(points.endMs.length).toBeLessThanOrEqual(400);
    }
    expect(points.durationMs).toContain(9000);
    expect(points.iteration[points.durationMs.indexOf(9000)]).toBe(123);
  });

  test("they stay ascending and within the limit, with the newest untouched and both extremes kept", () => {
    const values = fc.array(fc.integer({ min: 1, max: 1e6 }), { minLength: 1, maxLength: 600 });
    fc.assert(
      fc.property(values, fc.integer({ min: 20, max: 300 }), (durationMs, most) => {
        const points = pointsOf(rows(durationMs));
        const kept = thinned(points, most, Math.floor(most / 4));
        expect(kept.endMs.length).toBeLessThanOrEqual(Math.max(most, 1));
        expect(kept.endMs).toEqual(kept.endMs.toSorted((a, b) => a - b));
        expect(new Set(kept.endMs).size).toBe(kept.endMs.length);
        const fresh = Math.min(durationMs.length, Math.floor(most / 4));
        expect(kept.durationMs.slice(-fresh)).toEqual(durationMs.slice(-fresh));
        expect(Math.max(...kept.durationMs)).toBe(Math.max(...durationMs));
        expect(Math.min(...kept.durationMs)).toBe(Math.min(...durationMs));
      }),
    );
  });

  test("a log scale is wanted beyond a twentyfold span", () => {
    expect(wantsLog([100, 1900])).toBe(false);
    expect(wantsLog([100, 2100])).toBe(true);
    expect(wantsLog([])).toBe(false);
  });
});
