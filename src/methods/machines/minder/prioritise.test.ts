import { describe, expect, it } from "vitest";
import { testFleet } from "../../../../test/support/methods/minder-fleet.ts";
import { addInstances, prioritise, zScores, type Instances } from "./prioritise.ts";

describe("prioritisation (§4.3)", () => {
  const metrics = ["gpu-power-draw", "cpu-usage", "pfc-tx-packet-rate", "disk-usage"];

  it("has a z-score that is large where a machine deviates", () => {
    const fleet = testFleet({
      machines: 20,
      ticks: 60,
      seed: 2,
      act: (metric, machine, second, value) =>
        metric === "cpu-usage" && machine === 3 && second >= 30 ? 0.1 * value : value,
    });
    const grid = fleet.grids.find(({ metric }) => metric === "cpu-usage")!;
    expect(Math.max(...zScores(grid, 1000, 1028))).toBeLessThan(1.5);
    expect(zScores(grid, 1030, 1059)[3]).toBeGreaterThan(4);
    expect(Math.max(...zScores(grid, 5000, 6000))).toBe(0);
  });

  it("puts the metric first that tells most", () => {
    const all: Instances = { metrics, rows: [], labels: [] };
    for (let seed = 0; seed < 30; seed++) {
      // Faults show in CPU usage, a third of them only in PFC; power says nothing.
      const shown = seed % 3 === 0 ? "pfc-tx-packet-rate" : "cpu-usage";
      const fleet = testFleet({
        machines: 16,
        ticks: 40,
        seed,
        act: (metric, machine, second, value) =>
          metric === shown && machine === 5 && second >= 20 ? 3 * value : value,
      });
      addInstances(all, fleet, [
        { fromS: 1000, toS: 1019, isFaulty: false, machine: null },
        { fromS: 1020, toS: 1039, isFaulty: true, machine: 5 },
      ]);
    }
    // What says nothing comes last.
    expect(prioritise(all)).toEqual(["cpu-usage", "pfc-tx-packet-rate", "gpu-power-draw"]);
  });
});
