import { describe, expect, it } from "vitest";
import { simulate } from "../../../src/simulate/cluster/engine.ts";
import {
  effectsOf,
  HEALTHY_GPU,
  HEALTHY_MACHINE,
} from "../../../src/simulate/emit/metrics/effects.ts";
import type { Regime } from "../../../src/simulate/emit/metrics/timeline.ts";
import { drawScenario } from "./draw-scenario.ts";
import { metricOptions } from "./joint-metrics.ts";
import type { Scenario } from "./scenario.ts";

describe("what sensors show of a mismatch", () => {
  const drawn = drawScenario(21, { gpus: 64, family: "mismatch", misleading: "none" });
  const simulation = simulate(drawn.spec);
  const regime = {
    iteration: drawn.truths[0]!.fromIteration,
    severities: [Infinity],
    stopped: true,
    topology: simulation.topology,
  } as unknown as Regime;
  const shown = (scenario: Scenario) =>
    metricOptions(scenario, simulation, () => {
      throw new Error("the job is not over");
    }).effects!(effectsOf(simulation, regime), regime);
  const [rank] = drawn.truths[0]!.ranks;

  it("is nothing, though the engine plays a GPU that hangs", () => {
    expect(shown({ ...drawn, family: "gpu-hang" }).gpu(rank!)).not.toEqual(HEALTHY_GPU);
    expect(shown(drawn).gpu(rank!)).toEqual(HEALTHY_GPU);
    const machine = simulation.topology.machineOf(rank!);
    expect(shown(drawn).machine(machine)).toEqual(HEALTHY_MACHINE);
  });
});
