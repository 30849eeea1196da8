import { describe, expect, test } from "vitest";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { trackSeries } from "./track-series.ts";

const degradations = (level: (i: number) => number, to: number) =>
  trackSeries(makeSeries({ level, to })).episodes.filter(({ type }) => type === "degradation");

describe("what is normal for a job", () => {
  test("is where it comes back to, though its first iterations were a little faster", () => {
    // Nine slow stretches of 40 iterations, normal ones of 30 between them, as of a link that flaps.
    const level = (i: number): number => (i < 15 ? 1000 : (i - 15) % 70 < 40 ? 2360 : 1130);
    const found = degradations(level, 15 + 70 * 9);
    expect(found).toHaveLength(9);
    expect(found.every(({ isOpen }) => !isOpen)).toBe(true);
    // Each but the first is measured by the level that it left.
    for (const { ratio } of found.slice(1)) expect(ratio).toBeCloseTo(2360 / 1130, 1);
  });

  test("is not what a few fast iterations took", () => {
    const level = (i: number): number => (i > 60 && i <= 67 ? 700 : 1000);
    expect(degradations(level, 160)).toEqual([]);
  });

  test("is what it took before where only half of the slow-down is over", () => {
    const level = (i: number): number => (i <= 60 ? 1000 : i <= 120 ? 2000 : 1500);
    expect(degradations(level, 200)).toMatchObject([{ from: 61, isOpen: true }]);
  });

  test("is a lower level once it has lasted: what follows is slow by it", () => {
    const level = (i: number): number => (i <= 60 ? 1000 : i <= 120 ? 700 : 1000);
    expect(degradations(level, 200)).toMatchObject([{ from: 121, isOpen: true }]);
  });
});

test("a long iteration while the job gets under way is no restart", () => {
  const level = (i: number): number => (i === 12 ? 30_000 : 1000);
  const { restarts, changePoints, pauses } = trackSeries(makeSeries({ level, to: 100 }));
  expect([restarts, changePoints]).toEqual([[], []]);
  expect(pauses.map(({ iteration, why }) => [iteration, why])).toEqual([[12, "warm-up"]]);
});
