import { expect, it } from "vitest";
import type { Mitigation } from "../model/mitigation.ts";
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
  expect(gainWords(gainOf(remedy, plan)!)).toMatch(/\(healthy 749 ms\)$/);
  const beside = { ...plan, beside: { ranks: [3], healthyMs: 509 } };
  expect(gainWords(gainOf(remedy, beside)!)).toMatch(
    /\(749 ms with rank 3 still slow; healthy 509 ms\)$/,
  );
});
