import { describe, expect, it } from "vitest";
import type { Incident } from "../live/api.ts";
import { stepsOf } from "./steps.ts";

const FIRST: Incident = {
  id: "i",
  job: "a",
  run: "r",
  revision: 1,
  state: "suspected",
  kind: "fail-slow",
  summary: "off",
  onsetMs: 1000,
  openedMs: 2000.4,
  changedMs: 2000,
  resolvedMs: null,
  fromIteration: null,
  relapses: 0,
  verdict: null,
  machines: [],
  ranks: [],
  wastedGpuMs: 0,
  actions: [],
};
const ACTION = {
  id: "1",
  do: "cordon-node",
  target: "node001",
  why: "",
  state: "proposed",
  canRun: true,
  changedMs: 4000,
  outcome: "",
  data: {},
} as const;

describe("the way of an incident", () => {
  it("is told by its changes of state and what was done, in order of time", () => {
    const says = stepsOf([
      FIRST,
      { ...FIRST, revision: 2, state: "confirmed", changedMs: 2000, actions: [ACTION] },
      {
        ...FIRST,
        revision: 3,
        state: "confirmed",
        changedMs: 5000,
        actions: [{ ...ACTION, state: "done", changedMs: 5000 }],
      },
      {
        ...FIRST,
        revision: 4,
        state: "resolved",
        summary: "over: as fast as before",
        changedMs: 9000,
      },
    ]);
    expect(says.map((step) => `${step.atMs} ${step.says}`)).toEqual([
      "1000 it probably began",
      "2000.4 suspected: something is wrong",
      "2000.4 confirmed: it lasts, and there is a verdict",
      "5000 Cordon the node · node001: done",
      "9000 resolved, over: as fast as before",
    ]);
  });

  it("stays readable after thousands of relapses", () => {
    const many = Array.from({ length: 5000 }, (_, i) => ({
      ...FIRST,
      revision: i + 1,
      changedMs: 2000 + i,
      state: i % 2 === 0 ? ("relapsed" as const) : ("resolved" as const),
    }));
    const steps = stepsOf(many);
    expect(steps).toHaveLength(60);
    expect(steps.at(-1)!.atMs).toBe(6999);
  });
});
