/** Detect, localize, plan, apply, measure: the whole loop on simulated jobs, faults unknown to it. */
import { describe, expect, test } from "vitest";
import { closedLoop } from "../../eval/mitigate/closed-loop.ts";
import { compareWithSimulator } from "../../eval/mitigate/cost-model.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { memoryOutput } from "../support/simulate/memory-output.ts";
import { runSimulation } from "../../src/simulate/run.ts";
import { planForVerdict } from "../../src/mitigate/from-verdict.ts";
import type { Mitigation } from "../../src/model/mitigation.ts";
import { diagnoseFiles, jobOf } from "../support/in-memory.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";

const OVERHEADS = { microBatchesMs: 200, topologyMs: 2_000, restartMs: Infinity };

function mean(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

async function both(shape: Partial<ClusterSpec>, ...faults: string[]) {
  const spec = completeSpec({ microBatches: 8, ...shape, faults: faults.map(parseFault) });
  const without = await closedLoop(spec, { isMitigating: false, overheads: OVERHEADS });
  const treated = await closedLoop(spec, { isMitigating: true, overheads: OVERHEADS });
  return { without, treated, steps: treated.steps.map(({ order }) => order.strategy) };
}

describe("the closed loop", () => {
  test("compound slow GPUs: micro-batches follow, and are equal again at the end", async () => {
    const { without, treated, steps } = await both(
      { gpus: 8, tp: 1, pp: 1, iterations: 100 },
      "gpu-slow:rank=3:from=30:to=80:severity=1.8",
      "gpu-slow:rank=4:from=45:to=70:severity=2.2",
    );
    expect(new Set(steps)).toEqual(new Set(["S2"]));
    const slow = (ms: readonly number[]): number => mean(ms.slice(52, 70));
    expect(slow(without.iterationMs) / slow(treated.iterationMs)).toBeGreaterThan(1.5);
    expect(treated.steps.at(-1)!.order.microBatches).toEqual([8, 8, 8, 8, 8, 8, 8, 8]);
    expect(mean(treated.iterationMs.slice(90)) / treated.healthyMs).toBeLessThan(1.03);
  });

  test("a congested way between gradients: places change, the job is as fast as before", async () => {
    const { without, treated, steps } = await both(
      { gpus: 16, tp: 1, pp: 4, dp: 4, gpusPerMachine: 1, iterations: 110 },
      "network-slow:link=1-2:from=30:severity=10",
    );
    expect(steps).toEqual(["S3"]);
    expect(mean(without.iterationMs.slice(-20)) / without.healthyMs).toBeGreaterThan(1.4);
    expect(mean(treated.iterationMs.slice(-20)) / treated.healthyMs).toBeLessThan(1.03);
  });

  test.each<[Partial<ClusterSpec>, string]>([
    [
      { gpus: 16, tp: 1, pp: 4, gpusPerMachine: 1, microBatches: 12 },
      "gpu-slow:rank=5:from=12:severity=2",
    ],
    [{ gpus: 16, tp: 2, pp: 1, microBatches: 8 }, "gpu-slow:rank=5:from=12:severity=1.6"],
  ])("a verdict's plan promises what the simulator gives: %j", async (shape, fault) => {
    const spec = completeSpec({ iterations: 26, ...shape, faults: [parseFault(fault)] });
    const output = memoryOutput();
    runSimulation(spec, ["operators"], output);
    const files = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
    const plan = planForVerdict(jobOf(files), await diagnoseFiles(files)) as Mitigation;
    const { microBatches, iterationMs } = plan.steps.find(({ strategy }) => strategy === "S2")!;
    const always = {
      ...spec,
      iterations: 12,
      faults: [parseFault(fault.replace("from=12", "from=1"))],
    };
    const simulation = simulate(always, { mostMicroBatches: 3 * spec.microBatches });
    const seen: number[] = [];
    for (const times of simulation.iterations((i) =>
      i === 1 ? { microBatches: microBatches! } : null,
    ))
      seen.push((times.endNs - times.startNs) / 1e6);
    expect(iterationMs! / mean(seen.slice(2))).toBeGreaterThan(0.94);
    expect(iterationMs! / mean(seen.slice(2))).toBeLessThan(1.06);
    expect(mean(seen.slice(2))).toBeLessThan(0.9 * plan.nowMs);
  });

  test("a healthy job is left alone", async () => {
    const { steps, treated, without } = await both({ gpus: 16, tp: 2, pp: 2, iterations: 120 });
    expect(steps).toEqual([]);
    expect(treated.totalMs).toBe(without.totalMs);
  });

  test("the cost model expects what the simulator does", () => {
    const errors = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((seed) =>
      compareWithSimulator(seed).map((one) => Math.abs(one.expectedMs / one.simulatedMs - 1)),
    );
    errors.sort((a, b) => a - b);
    expect(errors[errors.length >> 1]).toBeLessThan(0.03);
    expect(errors.at(-1)).toBeLessThan(0.25);
  });
});
