import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MachinePicture } from "../../model/machine-picture.ts";
import { renderMachinePlot, runsOf } from "./machines-plot.ts";
import { amountAxis, BOTTOM, LEFT, RIGHT, timeAxis, TOP } from "./machines-scale.ts";
import { machinePicture, START_S, STEP_S } from "../../../test/support/report/machines.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";

function draw(picture: MachinePicture): string {
  const { text } = renderMachinePlot(picture, timeAxis([picture]), "71 W, peers 500 W");
  readTags(text);
  expect(text).not.toMatch(/NaN|Infinity|undefined|null/);
  return text;
}

function pathOf(svg: string, name: string): string {
  return readTags(svg)
    .find(({ attributes }) => attributes.get("class") === name)!
    .attributes.get("d")!;
}

/** Moves of the pen: one for each stretch. */
function stretches(path: string): number {
  return path.split("M").length - 1;
}

const twenty = Array.from({ length: 20 }, (_, i) => (i < 10 ? 500 : 71));

describe("the plot of one metric", () => {
  test("never bridges a gap, neither of the machine nor of its peers", () => {
    const gap = twenty.map((value, i) => (i > 4 && i < 9 ? null : value));
    const svg = draw(machinePicture(gap, { low: gap, middle: gap, high: gap }));
    for (const name of ["own", "peers-middle", "peers"])
      expect(stretches(pathOf(svg, name))).toBe(2);
    expect(pathOf(draw(machinePicture(twenty)), "own").match(/[ML]/g)).toHaveLength(20);
  });

  test("parts the line where time jumps although no point says so", () => {
    const timeS = twenty.map((_, i) => START_S + i * STEP_S + (i < 10 ? 0 : 600));
    expect(runsOf(timeS, () => true).map(({ length }) => length)).toEqual([10, 10]);
    expect(stretches(pathOf(draw(machinePicture(twenty, { timeS })), "own"))).toBe(2);
  });

  test("shows a lone point as a dot", () => {
    const lone = twenty.map((_, i) => (i === 7 ? 300 : null));
    expect(pathOf(draw(machinePicture(lone)), "own")).toMatch(/^M[\d.]+ [\d.]+h0$/);
    expect(draw(machinePicture([300]))).toContain("00:00:05");
  });

  test("says that there is no sample where there is none", () => {
    const none = twenty.map(() => null);
    expect(draw(machinePicture(none))).toContain("no sample of its own");
    expect(draw(machinePicture(none))).toContain(">no sample</text");
    const all = draw(machinePicture(none, { low: none, middle: none, high: none }));
    expect(all).toContain("no sample of its peers");
    expect(draw(machinePicture([]))).toContain(">no sample</text");
    expect(draw(machinePicture(twenty))).not.toContain("no sample");
  });

  test("says machine, metric, device, time and figures to those who cannot see it", () => {
    const svg = draw(machinePicture(twenty));
    expect(readTags(svg)[0]!.attributes.get("aria-label")).toBe(
      "node007, GPU power, gpu3: unlike its peers 2026-11-15 00:01:40 to 00:03:20 UTC; 71 W, peers 500 W.",
    );
    expect(svg).toMatch(/class="alarm"[^>]*>since 00:01:40</);
    expect(svg).toMatch(/>00:00:00<[\s\S]*>00:03:20</);
  });

  test("shades the time of the deviation, and nothing where it lies outside", () => {
    expect(draw(machinePicture(twenty))).toMatch(/class="unlike"\s+x="152"\s+y="18"\s+width="100"/);
    expect(draw(machinePicture(twenty, { toS: START_S + 150 }))).toContain("00:01:40 – 00:02:30");
    for (const [fromS, toS] of [
      [0, 10],
      [NaN, NaN],
      [START_S + 100, START_S],
    ] as const)
      expect(draw(machinePicture(twenty, { fromS, toS }))).not.toContain('class="unlike"');
  });

  test("says nothing of a deviation where there was no time of one", () => {
    const [fromS, toS] = [START_S + 100, START_S + 100];
    expect(draw(machinePicture(twenty, { fromS, toS }))).not.toMatch(/unlike|since/);
  });

  test("names the day where the axis has two", () => {
    const timeS = twenty.map((_, i) => START_S + i * 7200);
    expect(draw(machinePicture(twenty, { timeS }))).toMatch(/>11-14 23:00<[\s\S]*>11-16 15:00</);
  });
});

describe("the axis of amounts", () => {
  const labels = (
    value: readonly (number | null)[],
    given: Partial<MachinePicture> = {},
  ): string[] => amountAxis(machinePicture(value, given))!.ticks.map(({ label }) => label);
  const near = (level: number): Partial<MachinePicture> => {
    const all = twenty.map(() => level);
    return { low: all, middle: all, high: all };
  };

  test("has two or three round ticks in units that people use", () => {
    expect(labels(twenty)).toEqual(["0 W", "200 W", "400 W"]);
    expect(labels([0, 0.97], { ...near(0.98), unit: "share" })).toEqual(["0 %", "50 %", "100 %"]);
    expect(labels([6e8, 3e9], { ...near(3e9), unit: "B/s" })).toEqual(["0 GB/s", "2 GB/s"]);
    expect(labels([1060, 1755], { ...near(1755), unit: "MHz" })).toEqual([
      "1.2 GHz",
      "1.4 GHz",
      "1.6 GHz",
    ]);
    expect(labels([60, 84], { ...near(60), unit: "°C" })).toEqual(["60 °C", "70 °C", "80 °C"]);
    expect(labels([40_000, 62_000], { ...near(62_000), unit: "MiB" })).toEqual([
      "40 GiB",
      "50 GiB",
      "60 GiB",
    ]);
  });

  test("is logarithmic where peers would be nothing beside the machine, and says so", () => {
    const rates = { ...near(20), unit: "1/s", metric: "pfc-tx-packet-rate" };
    const storm = twenty.map((_, i) => (i < 10 ? 20 : 9e4));
    expect(amountAxis(machinePicture(storm, rates))!.isLog).toBe(true);
    expect(draw(machinePicture(storm, rates))).toContain(">log scale</text");
    expect(labels(storm, rates)).toEqual(["10/s", "1k/s", "100k/s"]);
    expect(labels([0, ...storm], rates)[0]).toBe("0");
    expect(amountAxis(machinePicture([1, 400], near(500)))!.isLog).toBe(false);
    expect(amountAxis(machinePicture([0.001, 0.9], { ...near(0.001), unit: "share" }))!.isLog).toBe(
      false,
    );
  });

  test.each([0, 500, -3, 1e-40, 1e29, 1e-9])("holds a constant %d inside", (level) => {
    const { y, ticks } = amountAxis(machinePicture([level, level], near(level)))!;
    expect(y(level)).toBeGreaterThanOrEqual(TOP);
    expect(y(level)).toBeLessThanOrEqual(BOTTOM);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThanOrEqual(3);
    draw(machinePicture([level, level], near(level)));
  });
});

test("whatever the series, the plot has numbers and stays inside", () => {
  const number = fc.oneof(
    fc.constant(null),
    fc.double(),
    fc.double({ min: 0, max: 1000, noNaN: true }),
    fc.constantFrom(0, -0, 5e-324, 1e308, -1e308, Infinity),
  );
  const time = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: START_S, max: START_S + 1000 }) },
    fc.constantFrom(NaN, -1e300, 1e300, 0),
  );
  const point = fc.tuple(number, number, number, number, time);
  fc.assert(
    fc.property(
      fc.array(point, { maxLength: 12 }),
      time,
      time,
      fc.constantFrom("W", "share", "B/s", "1/s", "", "MiB"),
      (points, fromS, toS, unit) => {
        const column = (k: 0 | 1 | 2 | 3): (number | null)[] => points.map((one) => one[k]);
        const timeS = points.map((one) => one[4]);
        const svg = draw(
          machinePicture(column(0), {
            timeS,
            low: column(1),
            middle: column(2),
            high: column(3),
            fromS,
            toS,
            unit,
          }),
        );
        for (const [, x, y] of svg.matchAll(/[ML]([-\d.e+]+) ([-\d.e+]+)/g)) {
          expect(Number(x)).toBeGreaterThanOrEqual(LEFT - 1);
          expect(Number(x)).toBeLessThanOrEqual(RIGHT + 1);
          expect(Number(y)).toBeGreaterThanOrEqual(TOP - 4);
          expect(Number(y)).toBeLessThanOrEqual(BOTTOM);
        }
      },
    ),
  );
});
