import { describe, expect, test } from "vitest";
import { CHECKPOINT, EVALUATION, START } from "../../model/series.ts";
import { makeSeries } from "./test-series.ts";
import { trackSeries } from "./track-series.ts";

const steady = (): number => 1000;

describe("change points", () => {
  test("carry the printed numbers, both levels, and the iteration at which one knew", () => {
    const tracked = trackSeries(makeSeries({ level: (i) => (i < 61 ? 1000 : 1500), to: 120 }));
    expect(tracked.changePoints).toHaveLength(1);
    const [change] = tracked.changePoints;
    expect(change).toMatchObject({ iteration: 61, direction: "slower", line: 61 });
    expect(change!.detectedAt).toBeGreaterThan(61);
    expect(change!.detectedAt).toBeLessThanOrEqual(68);
    expect(change!.beforeMs).toBeCloseTo(1000, -1.5);
    expect(change!.ratio).toBeCloseTo(1.5, 1);
    expect(change!.atMs).toBeGreaterThan(Date.UTC(2026, 0, 1));
  });

  test("of averages over ten iterations are dated by the line that first shows them", () => {
    const series = makeSeries({ level: (i) => (i <= 400 ? 1000 : 1400), to: 1000, every: 10 });
    const { changePoints, iterations } = trackSeries(series);
    expect(changePoints.map(({ iteration }) => iteration)).toEqual([410]);
    expect(iterations).toBe(1000);
  });
});

describe("what is recognised and not alarmed on", () => {
  test("warm-up: a giant first iteration, a slow second", () => {
    const level = (i: number): number => (i === 1 ? 90_000 : i === 2 ? 1800 : 1000);
    const { changePoints, pauses, medianMs } = trackSeries(makeSeries({ level, to: 60 }));
    expect(changePoints).toEqual([]);
    expect(pauses.map(({ iteration, why }) => [iteration, why])).toEqual([
      [1, "warm-up"],
      [2, "warm-up"],
    ]);
    expect(medianMs).toBeCloseTo(1000, -1.5);
  });

  test("a long warm-up: twenty slow iterations before the first level", () => {
    const level = (i: number): number => (i <= 20 ? 1600 : 1000);
    const { changePoints, episodes } = trackSeries(makeSeries({ level, to: 100 }));
    expect(changePoints).toEqual([]);
    expect(episodes).toEqual([]);
  });

  test("a restart: the counter jumps back, and the first iterations are slow again", () => {
    const run = (i: number): number => (i === 41 ? 30_000 : i === 42 ? 2500 : 1000);
    const { changePoints, restarts, pauses } = trackSeries(
      makeSeries({ level: steady, to: 60 }, { level: run, from: 41, to: 120, seed: 2 }),
    );
    expect(changePoints).toEqual([]);
    expect(restarts).toEqual([41]);
    expect(pauses.map(({ why }) => why)).toEqual(["restart", "warm-up"]);
  });

  test("a restart that the log announces, without a jump of the counter", () => {
    const between = (i: number): number => (i === 50 ? START : 0);
    const level = (i: number): number => (i === 50 ? 20_000 : 1000);
    const { changePoints, restarts } = trackSeries(makeSeries({ level, to: 100, between }));
    expect(changePoints).toEqual([]);
    expect(restarts).toEqual([50]);
  });

  test("one iteration of twenty times the length every fifty: restarts, not changes, not spikes", () => {
    const level = (i: number): number => (i % 50 === 0 ? 20_000 : 1000);
    const { changePoints, restarts, episodes } = trackSeries(makeSeries({ level, to: 260 }));
    expect(changePoints).toEqual([]);
    expect(restarts).toEqual([50, 100, 150, 200, 250]);
    expect(episodes).toEqual([]);
  });

  test("pauses for checkpoints and evaluation", () => {
    const between = (i: number): number =>
      i % 25 === 0 ? CHECKPOINT : i % 40 === 0 ? EVALUATION : 0;
    const level = (i: number): number => (i % 25 === 0 ? 3000 : i % 40 === 0 ? 2000 : 1000);
    const { changePoints, episodes, pauses } = trackSeries(makeSeries({ level, to: 200, between }));
    expect(changePoints).toEqual([]);
    expect(episodes).toEqual([]);
    expect(pauses.filter(({ why }) => why === "checkpoint")).toHaveLength(8);
    expect(pauses.filter(({ why }) => why === "evaluation")).toHaveLength(4);
  });

  test("another batch size", () => {
    const batch = (i: number): number => (i <= 100 ? 256 : 512);
    const level = (i: number): number => (i <= 100 ? 1000 : 1950);
    expect(trackSeries(makeSeries({ level, to: 200, batch })).changePoints).toEqual([]);
    expect(trackSeries(makeSeries({ level, to: 200 })).changePoints).toHaveLength(1);
  });

  test("iterations that nobody timed", () => {
    const level = (i: number): number => (i % 7 === 0 ? NaN : 1000);
    const { changePoints, medianMs } = trackSeries(makeSeries({ level, to: 150 }));
    expect(changePoints).toEqual([]);
    expect(medianMs).toBeCloseTo(1000, -1.5);
  });
});

test("a job that is slower since a restart is slower since its first iteration after it", () => {
  const level = (i: number): number => (i === 51 ? 9000 : 1500);
  const { changePoints, restarts } = trackSeries(
    makeSeries({ level: steady, to: 60 }, { level, from: 51, to: 140, seed: 3 }),
  );
  expect(restarts).toEqual([51]);
  expect(changePoints.map(({ iteration }) => iteration)).toEqual([51]);
});

test("an empty series, one point, and nothing but unknown durations are no trouble", () => {
  for (const to of [0, 1]) {
    const { changePoints, episodes, wastedMs } = trackSeries(makeSeries({ level: steady, to }));
    expect([changePoints, episodes, wastedMs]).toEqual([[], [], 0]);
  }
  expect(trackSeries(makeSeries({ level: () => NaN, to: 30 })).changePoints).toEqual([]);
});
