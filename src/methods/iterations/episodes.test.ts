import { describe, expect, test } from "vitest";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { trackSeries } from "./track-series.ts";

/** Holmes' figures 5 to 7, as it describes them. */
describe("an irregularity", () => {
  test("that hits single iterations at random is a spike each", () => {
    const at = new Set([77, 163, 301, 466, 590, 707, 880]);
    const level = (i: number): number => (at.has(i) ? 1960 : 1000);
    const { episodes, irregular, wastedMs } = trackSeries(makeSeries({ level, to: 1000 }));
    expect(episodes.map(({ type, from, to }) => [type, from, to])).toEqual(
      [...at].map((i) => ["spike", i, i]),
    );
    expect(irregular).toBe(7);
    expect(wastedMs).toBeCloseTo(7 * 960, -2.5);
  });

  test("that comes back every seven iterations is one fluctuation with that period", () => {
    const level = (i: number): number => (i % 7 === 0 ? 9450 : 8250);
    const { episodes, changePoints } = trackSeries(makeSeries({ level, to: 600, noise: 0.008 }));
    expect(changePoints).toEqual([]);
    expect(episodes.map(({ type }) => type)).toEqual(["fluctuation"]);
    expect(episodes[0]!.period).toBeCloseTo(7, 1);
    expect(episodes[0]!.iterations).toBe(85);
  });

  test("that stays is a degradation, open at the end or closed by a relief", () => {
    const open = trackSeries(makeSeries({ level: (i) => (i <= 500 ? 1000 : 1200), to: 1000 }));
    expect(open.episodes).toHaveLength(1);
    expect(open.episodes[0]).toMatchObject({
      type: "degradation",
      from: 501,
      to: 1000,
      isOpen: true,
    });
    const level = (i: number): number => (i > 300 && i <= 400 ? 1500 : 1000);
    const { episodes } = trackSeries(makeSeries({ level, to: 800 }));
    expect(episodes).toHaveLength(1);
    expect(episodes[0]).toMatchObject({ type: "degradation", from: 301, to: 400, isOpen: false });
    expect(episodes[0]!.wastedMs).toBeCloseTo(100 * 500, -4);
    expect(episodes[0]!.ratio).toBeCloseTo(1.5, 1);
  });

  test("of a tenth is a degradation, whichever way its median falls", () => {
    const level = (i: number): number => (i <= 120 ? 1000 : 1100);
    let found = 0;
    for (let seed = 1; seed <= 30; seed++) {
      const { episodes } = trackSeries(makeSeries({ level, to: 240, noise: 0.015, seed }));
      found += episodes.filter(({ type }) => type === "degradation").length;
    }
    expect(found).toBeGreaterThanOrEqual(29);
  });

  test("in two steps is one degradation, measured from the healthy level", () => {
    const level = (i: number): number => [1000, 1400, 2000, 1000][Math.floor((i - 1) / 100)]!;
    const { episodes } = trackSeries(makeSeries({ level, to: 400 }));
    expect(episodes.filter(({ type }) => type === "degradation")).toHaveLength(1);
    expect(episodes[0]).toMatchObject({ from: 101, to: 300 });
    expect(episodes[0]!.ratio).toBeCloseTo(1.7, 1);
  });

  test("is none where the job's own noise reaches as far", () => {
    const { episodes } = trackSeries(makeSeries({ level: () => 1000, to: 400, noise: 0.12 }));
    expect(episodes).toEqual([]);
  });

  test("counts the iterations that an averaged line stands for", () => {
    const level = (i: number): number => (i === 500 ? 1500 : 1000);
    const { irregular, wastedMs } = trackSeries(makeSeries({ level, to: 1000, every: 10 }));
    expect(irregular).toBe(10);
    expect(wastedMs).toBeCloseTo(10 * 500, -3);
  });
});
