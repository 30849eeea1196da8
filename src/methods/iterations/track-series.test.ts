import { describe, expect, test } from "vitest";
import { CHECKPOINT, EVALUATION, START, type ChangePoint } from "../../model/series.ts";
import { makeSeries } from "../../../test/support/methods/series.ts";
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

  test("one iteration of twenty times the length every fifty: standstills, no changes, no restarts", () => {
    const level = (i: number): number => (i % 50 === 0 ? 20_000 : 1000);
    const tracked = trackSeries(makeSeries({ level, to: 260 }));
    expect([tracked.changePoints, tracked.restarts, tracked.episodes]).toEqual([[], [], []]);
    expect(tracked.pauses.map(({ iteration, why }) => [iteration, why])).toEqual(
      [50, 100, 150, 200, 250].map((iteration) => [iteration, "standstill"]),
    );
    expect(tracked.standstillMs).toBeCloseTo(5 * 19_000, -4);
  });

  test("a stall at which a new level begins is no restart, and the level no matter of it", () => {
    const level = (i: number): number => (i === 60 ? 30_000 : i > 60 ? 1400 : 1000);
    const { changePoints, restarts } = trackSeries(makeSeries({ level, to: 140 }));
    expect(restarts).toEqual([]);
    expect(changePoints).toHaveLength(1);
    expect(Math.abs(changePoints[0]!.iteration - 61)).toBeLessThanOrEqual(1);
    expect(changePoints[0]!.ratio).toBeCloseTo(1.4, 1);
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

describe("a mark that always stands there excuses nothing", () => {
  test.each([
    ["an evaluation", EVALUATION],
    ["a checkpoint", CHECKPOINT],
    ["a start", START],
  ])("%s before every line: the slow-down is found", (_, mark) => {
    const level = (i: number): number => (i <= 5000 ? 1000 : 2000);
    const series = makeSeries({ level, to: 10_000, every: 100, between: () => mark });
    const { changePoints, episodes } = trackSeries(series);
    expect(changePoints.map(({ iteration }) => iteration)).toEqual([5100]);
    expect(episodes.map(({ type }) => type)).toEqual(["degradation"]);
  });

  test("every fifth iteration ten times as long is a fluctuation, not eighty standstills", () => {
    const level = (i: number): number => (i % 5 === 0 ? 10_000 : 1000);
    const { pauses, wastedMs, episodes } = trackSeries(makeSeries({ level, to: 400 }));
    expect(pauses.length).toBeLessThanOrEqual(4);
    expect(wastedMs).toBeGreaterThan(70 * 9000);
    expect(episodes[0]).toMatchObject({ type: "fluctuation" });
    expect(episodes[0]!.period).toBeCloseTo(5, 0);
  });
});

describe("batch sizes", () => {
  const batch = (i: number): number => (i <= 100 ? 128 : i <= 200 ? 192 : 256);
  const ramp = (i: number): number => (1000 * batch(i)) / 128;

  test("that grow are no irregularity and no noise", () => {
    const tracked = trackSeries(makeSeries({ level: ramp, to: 300, batch }));
    expect(tracked.changePoints).toEqual([]);
    expect(tracked.episodes).toEqual([]);
    expect(tracked.variation).toBeLessThan(0.02);
  });

  test("that shrink do not hide the slow-down after them", () => {
    const smaller = (i: number): number => (i <= 100 ? 512 : 256);
    const level = (i: number): number => (i <= 100 ? 2000 : i <= 200 ? 1000 : 1500);
    const { changePoints, episodes } = trackSeries(makeSeries({ level, to: 400, batch: smaller }));
    expect(changePoints.map(({ iteration }) => iteration)).toEqual([201]);
    expect(episodes).toHaveLength(1);
    expect(episodes[0]!.ratio).toBeCloseTo(1.5, 1);
    expect(episodes[0]!.wastedMs).toBeCloseTo(200 * 500, -4);
  });

  test("that differ by the last batch of an epoch are the same", () => {
    const level = (i: number): number => (i <= 100 ? 1000 : 3000);
    const wobbling = (i: number): number => (i % 2 === 0 ? 255 : 256);
    const { changePoints } = trackSeries(makeSeries({ level, to: 200, batch: wobbling }));
    expect(changePoints).toHaveLength(1);
  });
});

describe("a change that comes slowly", () => {
  const rising = (i: number): number => 1000 + 350 * Math.min(1, Math.max(0, (i - 100) / 200));

  test("is one ramp with its onset, its end, its slope and both levels", () => {
    for (const noise of [0.01, 0.03, 0.05]) {
      const { changePoints } = trackSeries(makeSeries({ level: rising, to: 500, noise }));
      expect(changePoints).toHaveLength(1);
      const [{ iteration, ramp, ratio, direction }] = changePoints as [ChangePoint];
      expect(direction).toBe("slower");
      expect(Math.abs(iteration - 100)).toBeLessThanOrEqual(20);
      expect(Math.abs(ramp!.until - 300)).toBeLessThanOrEqual(30);
      expect(ramp!.msPerIteration).toBeCloseTo(1.75, 0);
      expect(ratio).toBeCloseTo(1.35, 1);
    }
  });

  test("wastes what lies above the level at its onset, from there on", () => {
    const { episodes, wastedMs } = trackSeries(makeSeries({ level: rising, to: 500 }));
    expect(episodes).toMatchObject([{ type: "degradation", isOpen: true }]);
    expect(Math.abs(wastedMs / (200 * 175 + 200 * 350) - 1)).toBeLessThan(0.05);
  });

  test("is a ramp from the first iteration on where no level was before", () => {
    const level = (i: number): number => 1000 * Math.min(2, 1 + (i - 1) / 1000);
    const { changePoints, episodes } = trackSeries(makeSeries({ level, to: 1400 }));
    expect(changePoints).toMatchObject([{ iteration: 1, direction: "slower" }]);
    expect(changePoints[0]!.ratio).toBeCloseTo(2, 0);
    expect(Math.abs(changePoints[0]!.ramp!.until - 1000)).toBeLessThan(150);
    expect(episodes).toMatchObject([{ type: "degradation", from: 1, isOpen: true }]);
  });

  test("ends where the job recovers at once", () => {
    const level = (i: number): number => (i > 400 ? 1000 : 1000 + Math.max(0, i - 100));
    const { changePoints, episodes } = trackSeries(makeSeries({ level, to: 600 }));
    expect(changePoints.map((change) => [change.direction, change.ramp !== null])).toEqual([
      ["slower", true],
      ["faster", false],
    ]);
    expect(changePoints[1]!.iteration).toBe(401);
    expect(episodes).toMatchObject([{ type: "degradation", to: 400, isOpen: false }]);
  });

  test("and comes to a tenth only is none", () => {
    const level = (i: number): number => 1000 + 110 * Math.min(1, Math.max(0, (i - 100) / 100));
    for (let seed = 1; seed <= 10; seed++)
      expect(trackSeries(makeSeries({ level, to: 400, seed })).changePoints).toEqual([]);
  });

  test("is found after a dip that was none, in noise", () => {
    // 130 to 176 ms at once or little by little, after a fall from 148 ms that noise hides from the tracker or not.
    for (const noise of [0.01, 0.02, 0.04])
      for (const over of [1, 60]) {
        const up = (i: number): number => 46 * Math.min(1, Math.max(0, (i - 80) / over));
        const level = (i: number): number => (i < 60 ? 148 : 130 + up(i));
        for (let seed = 1; seed <= 5; seed++) {
          const found = trackSeries(makeSeries({ level, to: 250, noise, seed }));
          expect(found.episodes.some(({ type, isOpen }) => type === "degradation" && isOpen)).toBe(
            true,
          );
        }
      }
  });

  test("and faster, from the beginning on, is the job getting under way", () => {
    const level = (i: number): number => Math.max(1000, 1400 - 2 * i);
    expect(trackSeries(makeSeries({ level, to: 500 })).changePoints).toEqual([]);
  });
});

test("lines of several ranks in one file count once, in whatever order they come", () => {
  const one = makeSeries({ level: (i) => (i <= 60 ? 1000 : 1500), to: 120 });
  const order = [...one.iteration.keys()].flatMap((k) => [k, k, Math.max(0, k - 1), k]);
  const pickF = (column: Float64Array): Float64Array => Float64Array.from(order, (k) => column[k]!);
  const tracked = trackSeries({
    ...one,
    iteration: pickF(one.iteration),
    durationMs: pickF(one.durationMs),
    endMs: pickF(one.endMs),
    batch: pickF(one.batch),
    line: Int32Array.from(order),
    between: Uint8Array.from(order, () => 0),
  });
  expect(tracked.iterations).toBe(120);
  expect(tracked.restarts).toEqual([]);
  expect(tracked.changePoints.map(({ iteration }) => iteration)).toEqual([61]);
});

test("nothing is known before it is said to be known: prefixes tell the same", () => {
  const shapes = [2, 6, 30].map((factor) =>
    makeSeries({ level: (i) => (i > 50 && i <= 90 ? factor * 1000 : 1000), to: 140, noise: 0.03 }),
  );
  for (const whole of shapes) {
    const { changePoints } = trackSeries(whole);
    for (let length = 10; length <= 140; length++) {
      const part = {
        ...whole,
        iteration: whole.iteration.slice(0, length),
        durationMs: whole.durationMs.slice(0, length),
      };
      const known = changePoints.filter(({ detectedAt }) => detectedAt <= length);
      expect(trackSeries(part).changePoints.map(({ iteration }) => iteration)).toEqual(
        known.map(({ iteration }) => iteration),
      );
    }
  }
});

test("warm-up is counted in iterations: five lines of a hundred are no warm-up", () => {
  const slower = (): number => 1600;
  const { changePoints } = trackSeries(
    makeSeries(
      { level: steady, to: 3000, every: 100 },
      { level: slower, from: 2401, to: 6000, every: 100, seed: 4 },
    ),
  );
  expect(changePoints.map(({ iteration }) => iteration)).toEqual([2500]);
});
