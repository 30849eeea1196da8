import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seeded } from "../../base/random.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { renderIterationPlot } from "./iterations-plot.ts";
import {
  changeAt,
  episodeOf,
  slowSeries,
  syntheticSeries,
} from "../../../test/support/report/series.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";

/** The drawing, checked to be well formed and free of numbers that are none. */
function draw(tracked: TrackedSeries): string {
  const { text } = renderIterationPlot(tracked);
  readTags(text);
  expect(text).not.toMatch(/NaN|Infinity|undefined|\bstyle=/);
  return text;
}

function titles(text: string): string[] {
  return [...text.matchAll(/<title>([^<]*)<\/title>/g)].map(([, words]) => words!);
}

/** Left edge and width of each band, as shares of the plot. */
function bands(text: string): number[][] {
  return [...text.matchAll(/<rect x="([\d.]+)" y="\d+" width="([\d.]+)"/g)].map(([, x, width]) => [
    (Number(x) - 60) / 888,
    Number(width) / 888,
  ]);
}

function yLabels(text: string): string[] {
  return [...text.matchAll(/<text class="soft left" x="54"[^>]*>([^<]*)</g)].map(
    ([, label]) => label!,
  );
}

describe("a degradation", () => {
  const text = draw(slowSeries());

  test("is a band over its iterations, with its ratio", () => {
    expect(text).toContain(">×1.9 slower, iterations 16–85</text");
    expect(titles(text)).toContain("×1.9 slower, iterations 16–85: 70 iterations, 63 s wasted");
    const [[left, width]] = bands(text) as [[number, number]];
    expect(left).toBeCloseTo(15 / 120, 2);
    expect(width).toBeCloseTo(70 / 120, 2);
  });

  test("begins and ends with a marked line", () => {
    expect(titles(text)).toContain("Slower from iteration 16: 1 s → 1.9 s (×1.9), known at 20");
    expect(titles(text).some((words) => words.startsWith("Faster from iteration 86"))).toBe(true);
    expect(text.match(/class="change slower"/g)).toHaveLength(1);
    expect(text.match(/class="change faster"/g)).toHaveLength(1);
  });

  test("is named to those who cannot see it", () => {
    const [svg] = readTags(text);
    expect(svg!.attributes.get("role")).toBe("img");
    const label = svg!.attributes.get("aria-label");
    expect(label).toContain("Iteration times of train.log: 120 iterations, median 1 s");
    expect(label).toContain("×1.9 slower, iterations 16–85");
    expect(label).toContain("1 spike; 2 pauses");
  });

  test("is placed after the restart when its numbers are printed twice and it is slow only then", () => {
    const iteration = [...Array(60).keys(), ...Array(60).keys()].map((i) => i + 1);
    const durationMs = iteration.map((now, i) =>
      i >= 60 && now >= 20 && now < 40 ? 2_000 : 1_000,
    );
    const twice = draw(
      syntheticSeries({
        iteration,
        durationMs,
        restarts: [1],
        changePoints: [changeAt(20, 1_000, 2_000), changeAt(40, 2_000, 1_000)],
        episodes: [episodeOf("degradation", 20, 39, 2)],
      }),
    );
    expect(bands(twice)[0]![0]).toBeCloseTo((60 + 19) / 120, 2);
    const change = /class="change slower"[^]*?class="rule" d="M([\d.]+)/.exec(twice)!;
    expect((Number(change[1]) - 60) / 888).toBeCloseTo((60 + 19) / 120, 2);
    expect(titles(twice)).toContain("Restart before iteration 1");
    expect(twice).toMatch(/>\s*restart\s*<\/text/);
  });
});

describe("the axis", () => {
  test("belongs to the iterations that count: a warm-up is cut off with an arrow", () => {
    const text = draw(slowSeries());
    expect(yLabels(text)).toEqual(["0", "0.5", "1", "1.5", "2"]);
    expect(text).toContain("s per iteration<");
    expect(titles(text)).toContain("Iteration 1: warm-up, 30 s");
    expect(titles(text)).toContain("Iteration 100: checkpoint, 1.7 s");
  });

  test("cuts off one giant among few, and says so", () => {
    const durationMs = Array.from({ length: 50 }, (_, i) => (i === 30 ? 90_000 : 1_000));
    const text = draw(syntheticSeries({ durationMs }));
    expect(titles(text)).toContain("1 iteration beyond the axis, at most 90 s at iteration 31");
    expect(Number(yLabels(text).at(-1))).toBeLessThan(5);
  });

  test("is logarithmic only where levels lie more than five times apart", () => {
    const draws = (factor: number): string => {
      const durationMs = Array.from({ length: 100 }, (_, i) => (i < 50 ? 300 : 300 * factor));
      const changePoints = [changeAt(51, 300, 300 * factor)];
      const levelMs = durationMs.map(() => 300);
      return draw(syntheticSeries({ durationMs, changePoints, levelMs, medianMs: 300 }));
    };
    expect(draws(4)).not.toContain("logarithmic");
    expect(draws(17)).toContain("s per iteration, logarithmic");
    expect(yLabels(draws(17))).toEqual(["0.5", "1", "2", "5"]);
  });

  test.each([
    [0.4, "ms"],
    [40, "ms"],
    [4_000, "s"],
    [400_000, "min"],
    [40_000_000, "h"],
  ])("%d ms read in %s", (ms, unit) => {
    const shape = { durationMs: [ms, ms], levelMs: [ms, ms], medianMs: ms };
    expect(draw(syntheticSeries(shape))).toContain(`>${unit} per iteration<`);
  });
});

test("a fluctuation is hatched and tells its period", () => {
  const durationMs = Array.from({ length: 100 }, (_, i) => (i % 10 === 0 ? 1_500 : 1_000));
  const episodes = [episodeOf("fluctuation", 11, 91, 1.5, { period: 10 })];
  const text = draw(syntheticSeries({ durationMs, episodes }));
  expect(text).toContain(">fluctuates ×1.5 every 10 iterations, iterations 11–91</text");
  expect(text).toContain('class="hatch"');
});

test("of many spikes the worst are drawn, and the others counted", () => {
  const durationMs = Array.from({ length: 1_000 }, (_, i) => (i % 10 === 0 ? 1_300 + i : 1_000));
  const episodes = durationMs.flatMap((ms, i) =>
    i % 10 === 0 ? [episodeOf("spike", i + 1, i + 1, ms / 1_000)] : [],
  );
  const text = draw(syntheticSeries({ durationMs, episodes }));
  expect(text.match(/class="spike"/g)).toHaveLength(60);
  expect(text).toContain("not drawn: 40 more spikes");
  expect(titles(text).some((words) => words.startsWith("spike ×2.29, iteration 991"))).toBe(true);
});

test("a hostile source stays text", () => {
  const source = `"><script>alert(1)</script>`;
  const text = draw(slowSeries({ source }));
  expect(text).not.toContain("<script");
  expect(text).toContain("&lt;script&gt;");
});

describe("odd series", () => {
  test("without a point, or without a duration, are words instead of a picture", () => {
    for (const durationMs of [[], [NaN, NaN], [Infinity, -1, 0]]) {
      expect(draw(syntheticSeries({ durationMs }))).toMatch(/^<p class="note">No point/);
    }
  });

  test("of one point", () => {
    expect(draw(syntheticSeries({ durationMs: [500] }))).toContain('class="dots few"');
  });

  test("with unknown durations between known ones", () => {
    const durationMs = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? NaN : 1_000));
    expect(draw(syntheticSeries({ durationMs })).match(/h0/g)).toHaveLength(20);
  });

  test("of nothing but pauses", () => {
    const durationMs = [9_000, 8_000, 7_000];
    const pauses = durationMs.map((ms, i) => ({
      iteration: i + 1,
      why: "warm-up" as const,
      durationMs: ms,
    }));
    const text = draw(syntheticSeries({ durationMs, pauses, medianMs: NaN }));
    expect(text.match(/class="pause"/g)).toHaveLength(3);
  });

  test("of 200,000 points stay small and keep their extremes", () => {
    const random = seeded(1);
    const durationMs = Float64Array.from({ length: 200_000 }, () => 1_000 + 100 * random());
    durationMs[100_000] = 500;
    const episodes = Array.from({ length: 5_000 }, (_, i) =>
      episodeOf("spike", i * 40 + 1, i * 40 + 1, 1.1),
    );
    const text = draw(syntheticSeries({ durationMs, episodes, restarts: [5, 9, 77] }));
    expect(text.length).toBeLessThan(200_000);
    const lows = [...text.matchAll(/M[\d.]+ ([\d.]+)V/g)].map(([, y]) => Number(y));
    expect(Math.max(...lows.filter((y) => y < 258))).toBeGreaterThan(150);
  });

  test("give no number that is none, whatever the tracker says of them", () => {
    const odd = fc.oneof(
      fc.double(),
      fc.double({ min: 0, max: 5_000, noNaN: true }),
      fc.integer({ min: -3, max: 60 }),
      fc.constantFrom(NaN, Infinity, -Infinity, 0, 1e308, 5e-324),
    );
    const change = fc.record({
      iteration: odd,
      detectedAt: odd,
      beforeMs: odd,
      afterMs: odd,
      ratio: odd,
      direction: fc.constantFrom("slower" as const, "faster" as const),
      ramp: fc.option(fc.record({ until: odd, msPerIteration: odd })),
      confidence: odd,
      line: fc.integer(),
      atMs: fc.option(odd),
    });
    const episode = fc.record({
      from: odd,
      to: odd,
      ratio: odd,
      type: fc.constantFrom("spike" as const, "fluctuation" as const, "degradation" as const),
      iterations: odd,
      wastedMs: odd,
      period: fc.option(odd),
      isOpen: fc.boolean(),
    });
    const pause = fc.record({
      iteration: odd,
      why: fc.constantFrom("warm-up" as const, "restart" as const, "checkpoint" as const),
      durationMs: odd,
    });
    const points = fc.array(fc.tuple(odd, odd, odd), { maxLength: 60 });
    fc.assert(
      fc.property(
        points,
        fc.array(change, { maxLength: 8 }),
        fc.array(episode, { maxLength: 8 }),
        fc.array(pause, { maxLength: 8 }),
        fc.array(odd, { maxLength: 4 }),
        fc.constantFrom(1, 1, 1, 60),
        (list, changePoints, episodes, pauses, restarts, times) => {
          const all = Array.from({ length: times }, () => list).flat();
          const tracked = syntheticSeries({
            iteration: all.map(([iteration]) => iteration),
            durationMs: all.map(([, ms]) => ms),
            levelMs: all.map(([, , level]) => level),
            medianMs: list[0]?.[2] ?? NaN,
            changePoints,
            episodes,
            pauses,
            restarts,
          });
          draw(tracked);
        },
      ),
      { seed: 20_261_115, numRuns: 400 },
    );
  });
});
