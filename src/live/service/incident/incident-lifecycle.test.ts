import { expect, it } from "vitest";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import { accusesSame } from "./incident-lifecycle.ts";

const of = (change: Partial<Suspect>): Verdict => {
  const suspect = {
    type: "rank",
    name: null,
    ranks: [3],
    machine: "node000",
    cause: "gpu-slow",
    ...change,
  };
  return { suspects: [suspect] } as unknown as Verdict;
};

it("comes back where the same is wrong with the same", () => {
  expect(accusesSame(of({}), of({ ranks: [3, 4] }))).toBe(true);
  const whole = { type: "machine", ranks: [] } as const;
  expect(accusesSame(of(whole), of(whole))).toBe(true);
});

it("is another incident where something else is wrong, or with somebody else of the same machine", () => {
  expect(accusesSame(of({}), of({ cause: "dataloader" }))).toBe(false);
  expect(accusesSame(of({}), of({ ranks: [4] }))).toBe(false);
  expect(accusesSame(of({}), null)).toBe(false);
});
