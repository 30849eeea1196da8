/** From operators to a plan: what a verdict tells is enough to say how to live with it. */
import { describe, expect, test } from "vitest";
import { parseFault } from "../simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../simulate/cluster/spec.ts";
import { memoryOutput } from "../../test/support/simulate/memory-output.ts";
import { runSimulation } from "../simulate/run.ts";
import { diagnoseFiles, jobOf } from "../../test/support/in-memory.ts";
import type { Mitigation } from "../model/mitigation.ts";
import type { Verdict } from "../model/verdict.ts";
import { isPlan, planForVerdict } from "./from-verdict.ts";
import { placesOf } from "./layout.ts";
import { longTest } from "../../test/support/cases.ts";

function files(shape: Partial<ClusterSpec>, fault: string) {
  const output = memoryOutput();
  const spec = completeSpec({
    iterations: 24,
    layersPerStage: 2,
    microBatches: 8,
    ...shape,
    faults: [parseFault(fault)],
  });
  const { iterationMs } = runSimulation(spec, ["operators"], output);
  const all = [...output.bytes].map(([name, bytes]) => ({ name, bytes }));
  return { all, iterationMs };
}

describe("a plan from a verdict", () => {
  test("a slow GPU's replica gets fewer micro-batches; times are those that were seen", async () => {
    const { all, iterationMs } = files(
      { gpus: 16, tp: 2, pp: 2, gpusPerMachine: 2 },
      "gpu-slow:rank=6:from=10:severity=2",
    );
    const plan = planForVerdict(jobOf(all), await diagnoseFiles(all));
    expect(isPlan(plan)).toBe(true);
    const { nowMs, healthyMs, steps } = plan as Mitigation;
    expect(nowMs / iterationMs[15]!).toBeCloseTo(1, 1);
    expect(healthyMs / iterationMs[5]!).toBeCloseTo(1, 1);
    const share = steps.find(({ strategy }) => strategy === "S2")!;
    // Rank 6 is replica 3 (two ranks each).
    const least = Math.min(...share.microBatches!);
    expect(share.microBatches!.indexOf(least)).toBe(3);
    expect(share.microBatches!.reduce((a, b) => a + b, 0)).toBe(4 * 8);
    expect(share.iterationMs!).toBeLessThan(nowMs);
    expect(steps.find(({ strategy }) => strategy === "S4")!.exclude).toEqual(["node003"]);
  });

  test("is none where nobody knows how much of the slowdown the suspect causes", async () => {
    const { all } = files({ gpus: 16, tp: 2, pp: 2 }, "gpu-slow:rank=6:from=10:severity=2");
    const verdict = await diagnoseFiles(all);
    const told = { ...verdict, answer: { ...verdict.answer!, slower: null } };
    expect(planForVerdict(jobOf(all), told)).toEqual({
      why: "how much of the slowdown is due to the suspect is not known",
    });
  });

  test("of a tensor-parallel group over several machines only the suspect's is left out", async () => {
    const shape = { gpus: 16, tp: 4, pp: 1, gpusPerMachine: 1 };
    const { all } = files(shape, "gpu-slow:rank=6:from=10:severity=2");
    const job = jobOf(all);
    const verdict = await diagnoseFiles(all);
    expect(verdict.suspects.map(({ ranks }) => ranks)).toEqual([[6]]);
    const without = (told: Verdict) => {
      const plan = planForVerdict(job, told) as Mitigation;
      return plan.steps.find(({ strategy }) => strategy === "S4")!;
    };
    expect(without(verdict).exclude).toEqual(["node006"]);
    expect(without(verdict).why).toBe("restart without node006");
    // Two of one group, on machines of their own.
    const [first] = verdict.suspects;
    const second = { ...first!, ranks: [7], machine: "node007" };
    const both = without({ ...verdict, suspects: [first!, second] });
    expect(both.exclude).toEqual(["node006", "node007"]);
    expect(both.why).toBe("restart without node006, node007");
  });

  test("of a healthy job there is none", async () => {
    const { all } = files({ gpus: 16, tp: 2, pp: 2 }, "gpu-slow:rank=0:from=24:severity=1.01");
    expect(planForVerdict(jobOf(all), await diagnoseFiles(all))).toBeNull();
  });

  longTest("context-parallel ranks are one replica, experts forbid uneven counts", async () => {
    const cp = files(
      { gpus: 16, tp: 2, cp: 2, pp: 1, gpusPerMachine: 4 },
      "gpu-slow:rank=4:from=10:severity=2",
    );
    const plan = planForVerdict(jobOf(cp.all), await diagnoseFiles(cp.all)) as Mitigation;
    const { microBatches } = plan.steps.find(({ strategy }) => strategy === "S2")!;
    expect(microBatches).toHaveLength(4);
    expect(microBatches!.indexOf(Math.min(...microBatches!))).toBe(1);
    const ep = files({ gpus: 8, tp: 1, pp: 1, ep: 4 }, "gpu-slow:rank=4:from=10:severity=2");
    const even = planForVerdict(jobOf(ep.all), await diagnoseFiles(ep.all)) as Mitigation;
    expect(even.steps.map(({ strategy }) => strategy)).not.toContain("S2");
    expect(even.assumes.join()).toContain("experts are spread over replicas");
  });

  longTest("an interleaved job takes multiples, a fault that is over is left alone", async () => {
    const shape = { gpus: 16, tp: 1, pp: 4, gpusPerMachine: 1, schedule: "interleaved" as const };
    const { all } = files({ ...shape, microBatches: 16 }, "gpu-slow:rank=5:from=10:severity=3");
    const plan = planForVerdict(jobOf(all), await diagnoseFiles(all)) as Mitigation;
    const shares = plan.steps.find(({ strategy }) => strategy === "S2")!.microBatches!;
    expect(shares.reduce((a, b) => a + b, 0)).toBe(64);
    expect(shares.every((count) => count % 4 === 0)).toBe(true);
    const over = files(
      { gpus: 16, tp: 2, pp: 2, iterations: 40 },
      "gpu-slow:rank=5:from=12:to=22:severity=2",
    );
    expect(planForVerdict(jobOf(over.all), await diagnoseFiles(over.all))).toEqual({
      why: "the slowdown is over",
    });
  });

  test("a group in which some way is slow is no list of bad machines", async () => {
    const { all } = files(
      { gpus: 16, tp: 1, pp: 4, gpusPerMachine: 1, microBatches: 12 },
      "network-slow:link=0-1:from=10:severity=12",
    );
    const plan = planForVerdict(jobOf(all), await diagnoseFiles(all));
    const exclude = isPlan(plan) ? plan.steps.flatMap((step) => step.exclude ?? []) : [];
    expect(exclude.length).toBeLessThanOrEqual(1);
  });

  test("places follow from groups", () => {
    const { all } = files({ gpus: 16, tp: 2, pp: 2 }, "gpu-slow:rank=6:from=10:severity=2");
    const places = placesOf(jobOf(all));
    expect(places).toMatchObject({ replicas: 4, stages: 2 });
    expect("ranks" in places && places.ranks.slice(0, 5)).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
      [8, 9],
    ]);
  });
});
