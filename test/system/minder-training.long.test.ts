import { describe, expect, it } from "vitest";
import { runMinder } from "../../src/methods/machines/minder/minder.ts";
import { modelOf, readModels } from "../../src/methods/machines/minder/model-file.ts";
import { testFleet } from "../support/methods/minder-fleet.ts";
import { trainModels } from "../../src/methods/machines/minder/train-models.ts";

const METRICS = ["cpu-usage", "gpu-power-draw"];
const fleets = [1, 2, 3].map((seed) => testFleet({ machines: 8, ticks: 120, seed }));
const train = (batches: number): ReturnType<typeof trainModels> =>
  trainModels(fleets, { metrics: METRICS, batches, windowsPerTask: 200 });

describe("training on a user's own tasks", () => {
  it("makes a model for each metric, and one for any other", { timeout: 60_000 }, () => {
    const said: string[] = [];
    const models = trainModels(fleets, {
      metrics: METRICS,
      batches: 1500,
      windowsPerTask: 200,
      onProgress: (what) => said.push(what),
    });
    expect(Object.keys(models.metrics)).toEqual(METRICS);
    expect(new Set(said)).toEqual(new Set(["reading tasks", ...METRICS, "any other metric"]));
    for (const metric of METRICS) {
      const { mse, windows, limits } = models.metrics[metric]!;
      expect(windows).toBe(540);
      // Noise of a hundredth of the level, 1e-4, and of the swing what a quick training leaves.
      expect(mse).toBeLessThan(3e-3);
      expect(limits[0]).toBe(0);
      expect(limits[1]).toBeGreaterThan(0.3);
    }
    expect(modelOf(models, "constructor")).toBe(models.fallback);
    expect(JSON.stringify(models).length).toBeLessThan(20_000);
    const again = readModels(JSON.stringify(models), "models.json");
    const sick = testFleet({
      machines: 20,
      ticks: 400,
      seed: 9,
      act: (metric, machine, second, value) =>
        metric === "gpu-power-draw" && machine === 6 && second >= 100 ? 0.7 * value : value,
    });
    expect(runMinder(sick, again, { metrics: METRICS }).faulty).toMatchObject([
      { machine: "node-6", metric: "gpu-power-draw", untilS: null },
    ]);
  });

  it("gives the same models for the same seed", () => {
    expect(train(30)).toEqual(train(30));
  });

  it("leaves out what there are no windows of", () => {
    const short = testFleet({ machines: 4, ticks: 5, seed: 1 });
    const models = trainModels([short, fleets[0]!], {
      metrics: METRICS,
      batches: 5,
    });
    expect(Object.keys(models.metrics)).toEqual(METRICS);
  });
});
