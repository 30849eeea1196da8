import { describe, expect, it } from "vitest";
import { fillGaps, machinesIn, normaliseInto, taskLimits } from "./preprocess.ts";
import { gridOf, testFleet } from "../../../../test/support/methods/minder-fleet.ts";

describe("preprocessing (§4.1)", () => {
  const grid = gridOf(
    "cpu-usage",
    Float32Array.of(NaN, 1, NaN, NaN, 4, NaN, NaN, NaN, 8, NaN),
    10,
    1,
  );

  it("fills gaps with the nearest sample", () => {
    expect([...fillGaps(grid, 0, new Float32Array(10))]).toEqual([1, 1, 1, 4, 4, 4, 4, 8, 8, 8]);
  });

  it("leaves out machines without samples", () => {
    const two = gridOf("x", Float32Array.of(NaN, NaN, 1, NaN), 2, 1);
    const fleet = { ...testFleet({ machines: 2, ticks: 2, seed: 1 }), grids: [two] };
    expect([...machinesIn(fleet, [two])]).toEqual([1]);
  });

  it("brings values between the limits to 0 and 1, machines side by side", () => {
    const two = gridOf("x", Float32Array.of(0, 5, 10, 20, 20, 20), 3, 1);
    const to = new Float32Array(12);
    normaliseInto(to, 4, two, Int32Array.of(0, 1), [0, 10]);
    expect([...to]).toEqual([0, 1, 0, 0, 0.5, 1, 0, 0, 1, 1, 0, 0]);
  });

  it("takes limits from the task, but not from a glitch", () => {
    const mean = new Float32Array(300).fill(0.4);
    mean[150] = 1e9;
    expect(taskLimits(gridOf("cpu-usage", mean, 300, 1), Int32Array.of(0))).toEqual([
      0,
      Math.fround(0.4),
    ]);
  });
});
