import { expect, it } from "vitest";
import type { Mitigation } from "../model/mitigation.ts";
import type { Suspect } from "../model/verdict.ts";
import { gainOf, gainWords } from "./action-gain.ts";

const plan: Mitigation = {
  nowMs: 913,
  healthyMs: 749,
  bound: 2,
  steps: [
    {
      strategy: "S2",
      do: "micro-batches",
      iterationMs: 820,
      overheadMs: 0,
      afterIterations: 1,
      why: "",
    },
  ],
  assumes: [],
};
const remedy = { do: "micro-batches", target: "job" };

it("calls the pace healthy that the job has when nobody is slow", () => {
  expect(gainWords(gainOf(remedy, { findings: [], mitigation: plan })!)).toMatch(
    /\(healthy 749 ms\)$/,
  );
  const beside = { ...plan, beside: { ranks: [3], healthyMs: 509 } };
  expect(gainWords(gainOf(remedy, { findings: [], mitigation: beside })!)).toMatch(
    /\(749 ms with rank 3 still slow; healthy 509 ms\)$/,
  );
});

it("gives who mends the suspect the job's own paces, not those of a model", () => {
  const slow = {
    fact: "slow-down",
    slowDown: true,
    iteration: 341,
    until: null,
    detectedAt: 345,
    beforeMs: 778,
    afterMs: 964,
    ratio: 1.24,
    wastedHours: 0.1,
    from: null,
    to: null,
    series: "",
  } as const;
  const method = "iterations/live" as const;
  const finding = { id: "f1", method, says: "", weight: 1, at: [], data: slow };
  const beside = { ranks: [17], healthyMs: 506 };
  const restart = { ...plan.steps[0]!, do: "restart-without", exclude: ["node005"] };
  const modelled = { ...plan, nowMs: 877, healthyMs: 778, steps: [restart], beside };
  const verdict = { findings: [finding], mitigation: modelled };
  for (const action of ["cordon-node", "replace-link"])
    expect(gainWords(gainOf({ do: action, target: "node005" }, verdict)!)).toBe(
      "964 ms → 778 ms per iteration, 19 % less (778 ms with rank 17 still slow; healthy 506 ms)",
    );
  // Of two suspects each costs a part: that, only the model tells.
  const two = { ...verdict, suspects: [{} as Suspect, {} as Suspect] };
  expect(gainOf({ do: "cordon-node", target: "node005" }, two)?.nowMs).toBe(877);
});
