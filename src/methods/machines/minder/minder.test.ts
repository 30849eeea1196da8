import { describe, expect, it } from "vitest";
import { UserError } from "../../../base/errors.ts";
import { farthest, highestScore } from "./candidates.ts";
import { runMinder } from "./minder.ts";
import { readModels } from "./model-file.ts";
import { shippedModels } from "./models.ts";
import { PAPER_ORDER } from "./options.ts";
import { testFleet, type TestFleet } from "../../../../test/support/methods/minder-fleet.ts";

const models = shippedModels();
const SICK = 11;
const SIZE = { machines: 24, ticks: 600, seed: 5 };

/** One machine's CPU usage falls for a while. */
const falls =
  (from: number, to: number, metric = "cpu-usage", factor = 0.5): NonNullable<TestFleet["act"]> =>
  (name, machine, second, value) =>
    name === metric && machine === SICK && second >= from && second < to ? factor * value : value;

describe("Minder", () => {
  it("names the machine that deviates, the metric and the time", () => {
    const report = runMinder(testFleet({ ...SIZE, act: falls(200, 500) }), models);
    expect(report.faulty).toHaveLength(1);
    const [found] = report.faulty;
    expect(found).toMatchObject({ machine: "node-11", metric: "cpu-usage", order: 1 });
    expect(Math.abs(found!.sinceS - 1200)).toBeLessThanOrEqual(8);
    expect(Math.abs(found!.untilS! - 1500)).toBeLessThanOrEqual(8);
    expect(found!.score).toBeGreaterThan(0.6);
    const [deviation] = found!.deviations;
    expect(deviation).toMatchObject({ direction: "low", device: null });
    expect(deviation!.value / deviation!.peers).toBeCloseTo(0.5, 1);
    expect(report).toMatchObject({ method: "minder", machines: 24, fromS: 1000, toS: 1599 });
    expect(report.metrics.find(({ name }) => name === "nvlink-bandwidth")?.coverage).toBe(0);
  });

  it("says that it goes on where it does", () => {
    const report = runMinder(testFleet({ ...SIZE, act: falls(300, 600) }), models);
    expect(report.faulty[0]?.untilS).toBeNull();
  });

  it("names nobody where nothing is wrong", () => {
    for (const seed of [1, 2, 3])
      expect(runMinder(testFleet({ ...SIZE, seed }), models).faulty).toEqual([]);
  });

  it("takes the metrics in their order and stops at the first that tells", () => {
    const act: TestFleet["act"] = (metric, machine, second, value) =>
      (metric === "gpu-power-draw" && machine === 3 && second >= 100) ||
      (metric === "cpu-usage" && machine === 4 && second >= 300)
        ? 0.5 * value
        : value;
    const fleet = testFleet({ ...SIZE, act });
    expect(runMinder(fleet, models).faulty).toMatchObject([{ machine: "node-4" }]);
    const metrics = ["gpu-power-draw", "cpu-usage"];
    expect(runMinder(fleet, models, { metrics }).faulty).toMatchObject([{ machine: "node-3" }]);
  });

  it("pays no heed to what does not last, but as a jitter (§6.4)", () => {
    const fleet = testFleet({ ...SIZE, act: falls(200, 290) });
    const report = runMinder(fleet, models);
    expect(report.faulty).toEqual([]);
    expect(report.jitter[0]).toMatchObject({ machine: "node-11", metric: "cpu-usage" });
    const hasty = { metrics: ["cpu-usage"], continuityS: 0, similarityThreshold: 4.6 };
    expect(runMinder(fleet, models, hasty).faulty).toMatchObject([{ machine: "node-11" }]);
  });

  it("reckons continuity in seconds, whatever the sampling interval", () => {
    const every15 = { machines: 24, ticks: 80, seed: 3, stepS: 15 };
    const long = runMinder(testFleet({ ...every15, act: falls(300, 700) }), models);
    expect(long.faulty).toMatchObject([{ machine: "node-11", metric: "cpu-usage" }]);
    const short = runMinder(testFleet({ ...every15, act: falls(300, 400) }), models);
    expect(short.faulty).toEqual([]);
  });

  it("finds it with a longer stride too", () => {
    const fleet = testFleet({ ...SIZE, act: falls(200, 500) });
    expect(runMinder(fleet, models, { stride: 5 }).faulty).toMatchObject([{ machine: "node-11" }]);
  });

  it("cannot name anyone of four machines at a threshold of 3, and says so", () => {
    const act: TestFleet["act"] = (metric, machine, second, value) =>
      metric === "cpu-usage" && machine === 2 && second >= 100 ? 0 : value;
    const fleet = testFleet({ machines: 4, ticks: 600, seed: 1, act });
    const report = runMinder(fleet, models);
    expect(report.faulty).toEqual([]);
    expect(report.missing.join()).toContain("no normal score exceeds 1.50");
    const lower = runMinder(fleet, models, { similarityThreshold: 1.4 });
    expect(lower.faulty).toMatchObject([{ machine: "node-2", metric: "cpu-usage" }]);
  });

  it("compares machines that have samples, and fills gaps of those", () => {
    const act: TestFleet["act"] = (metric, machine, second, value) => {
      if (machine === 7 || (machine + second) % 9 === 0) return NaN;
      return metric === "cpu-usage" && machine === SICK && second >= 200 ? 0.5 * value : value;
    };
    const report = runMinder(testFleet({ ...SIZE, act }), models);
    expect(report.faulty).toMatchObject([{ machine: "node-11", metric: "cpu-usage" }]);
  });

  it("survives fleets of nothing", () => {
    const empty = { machines: [], role: new Int32Array(0), roles: [], grids: [], missing: [] };
    expect(runMinder(empty, models).faulty).toEqual([]);
    expect(runMinder(testFleet({ machines: 20, ticks: 3, seed: 1 }), models).faulty).toEqual([]);
  });
});

describe("normal scores", () => {
  it("are at most (N-1)/√N", () => {
    for (const count of [4, 8, 10, 16]) {
      const sums = new Float64Array(count).fill(1);
      sums[2] = count - 1;
      const { machine, score } = farthest(sums);
      expect(machine).toBe(2);
      expect(score).toBeCloseTo(highestScore(count), 9);
    }
    expect(highestScore(4)).toBe(1.5);
    expect(farthest(new Float64Array(5)).score).toBe(0);
  });
});

describe("a file of models", () => {
  it("is read as it was written", () => {
    expect(readModels(JSON.stringify(models), "m.json")).toEqual(models);
  });

  it("is shipped with a model for each of the paper's metrics, in less than 100 kB", () => {
    expect(PAPER_ORDER.every((metric) => Object.hasOwn(models.metrics, metric))).toBe(true);
    expect(JSON.stringify(models).length).toBeLessThan(100_000);
  });

  it.each(["", "[]", "null", '{"version":2}', '{"version":1,"metrics":{},"fallback":{}}'])(
    "is refused where it is none: %s",
    (text) => expect(() => readModels(text, "m.json")).toThrow(UserError),
  );
});
