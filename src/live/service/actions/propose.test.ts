import { describe, expect, it } from "vitest";
import type { Cause } from "../../../model/cause.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import { testIncident, testVerdict } from "../../../../test/support/live/incident.ts";
import { fits } from "../../../base/patterns.ts";
import { checkHooks, isPlainHostName, planOf } from "./hooks.ts";
import { machinesTaken } from "./limits.ts";
import { mergeActions, proposeActions } from "./propose.ts";
import type { ActionsConfig } from "./types.ts";

const CORDON = { do: "cordon-node", command: ["kubectl", "cordon", "{machine}"] };
const config = (change: Partial<ActionsConfig> = {}): ActionsConfig => ({
  dryRun: true,
  approval: "required",
  hooks: [],
  ...change,
});
const incidentOf = (verdict: Partial<Verdict>, suspect: Partial<Suspect> = {}): Incident =>
  testIncident({ verdict: testVerdict(verdict, suspect) });
const proposals = (incident: Incident, change: Partial<ActionsConfig> = {}): string[] =>
  proposeActions(incident, config(change)).map(
    ({ do: word, target, canRun }) => `${word} ${target}${canRun ? "" : " (no)"}`,
  );

describe("proposals", () => {
  it("are made without hooks, but cannot be run", () => {
    expect(proposals(testIncident())).toEqual([
      "cordon-node node003 (no)",
      "exclude-node node003 (no)",
    ]);
  });

  it("show the way that has a hook, for machines that it is for", () => {
    expect(proposals(testIncident(), { hooks: [CORDON] })).toEqual(["cordon-node node003"]);
    const other = [{ ...CORDON, machine: "gpu-*" }];
    expect(proposals(testIncident(), { hooks: other })).toEqual([
      "cordon-node node003 (no)",
      "exclude-node node003 (no)",
    ]);
  });

  it("follow from what is known, and have the same ids again", () => {
    expect(proposeActions(testIncident({ state: "suspected" }), config())).toEqual([]);
    expect(proposeActions(testIncident({ verdict: null }), config())).toEqual([]);
    const first = proposeActions(testIncident(), config());
    expect(proposeActions(testIncident({ revision: 9, changedMs: 9 }), config())).toEqual(
      first.map((action) => ({ ...action, changedMs: 9 })),
    );
  });

  it("take no machine out where the verdict is not sure", () => {
    expect(proposals(incidentOf({ confidence: 0.79 }))).toEqual([]);
    expect(proposals(incidentOf({ confidence: 0.79 }), { leastConfidence: 0.5 })).toHaveLength(2);
  });

  it.each<[Cause, Suspect["type"]]>([
    ["dataloader", "rank"],
    ["user-program", "rank"],
    ["user-config", "config"],
    ["collective-mismatch", "rank"],
    ["garbage-collection", "code"],
    ["data-imbalance", "data"],
    ["storage", "storage"],
    ["host-memory", "rank"],
    ["network-slow", "link"],
    ["network-slow", "switch"],
    ["stage-imbalance", "stage"],
    ["telemetry", "machine"],
    ["unknown", "machine"],
  ])("take no machine out for %s of a %s", (cause, type) => {
    expect(proposals(incidentOf({}, { cause, type }))).toEqual([]);
  });

  it("take no machine out where the advice is another: a GPU error may be the program's", () => {
    const actions = [{ do: "rerun-blocking", target: "rank 5", why: "" }];
    expect(proposals(incidentOf({ kind: "crash", actions }, { cause: "gpu-error" }))).toEqual([]);
    expect(proposals(incidentOf({ actions }, { cause: "cpu-stall" }))).toEqual([]);
    expect(proposals(incidentOf({ actions }, { cause: "gpu-hang" }))).toHaveLength(2);
    const unlike = incidentOf({ kind: "faulty-machine" }, { cause: "unknown", type: "machine" });
    expect(proposals(unlike)).toHaveLength(2);
  });

  it("never name the machine of a rank that only waits, nor one without a name", () => {
    expect(proposals(incidentOf({ victims: [5] }))).toEqual([]);
    expect(proposals(incidentOf({}, { machine: null }))).toEqual([]);
  });

  it("stop at so many machines a day, and say so", () => {
    const [base] = testVerdict().suspects;
    const suspects = ["node001", "node001", "node002", "node003", "node004"].map((machine, i) => ({
      ...base!,
      machine,
      ranks: [100 + i],
      score: 0.2,
    }));
    const incident = incidentOf({ suspects });
    expect(proposals(incident, { hooks: [CORDON] })).toEqual([
      "cordon-node node001",
      "cordon-node node002",
      "cordon-node node003 (no)",
      "cordon-node node004 (no)",
    ]);
    const third = proposeActions(incident, config({ hooks: [CORDON] }))[2]!;
    expect(third.why).toMatch(
      /; 2 machines of job llama \(node001, node002\) within 24 hours is the most that may be taken out: mostMachinesPerDay is 2$/,
    );
    // Those of earlier incidents count, the same machine once.
    const before = proposeActions(incident, config({ hooks: [CORDON] }), ["node009", "node002"]);
    expect(before.map(({ canRun }) => canRun)).toEqual([false, true, false, false]);
    expect(proposals(incident, { hooks: [CORDON], mostMachinesPerDay: 9 })).not.toContain("(no)");
    // One far behind the first is not sure.
    const weak = suspects.map((one, i) => ({ ...one, score: i === 0 ? 0.9 : 0.05 }));
    expect(proposals(incidentOf({ suspects: weak }), { hooks: [CORDON] })).toHaveLength(1);
  });

  it("hand out micro-batches where the plan has counts", () => {
    const step = {
      strategy: "S2",
      do: "rebalance-microbatches",
      why: "replica 2 is slow",
    } as const;
    const steps = [
      { ...step, iterationMs: 900, overheadMs: 0, afterIterations: 3, microBatches: [5, 5, 1, 5] },
    ];
    const mitigation = { nowMs: 1500, healthyMs: 800, bound: 2, steps, assumes: [] };
    const incident = incidentOf({ confidence: 0.5, mitigation });
    const hooks = [{ do: "micro-batches", command: ["put", "{job}", "{counts}"] }];
    const [action, ...more] = proposeActions(incident, config({ hooks }));
    expect(more).toEqual([]);
    expect(action).toMatchObject({ do: "micro-batches", target: "llama", canRun: true });
    expect(planOf(action!, incident, hooks[0]!)).toMatchObject({
      argv: ["put", "llama", "5,5,1,5"],
    });
    const junk = { ...mitigation, steps: [{ ...steps[0]!, microBatches: [1, NaN, -1] }] };
    expect(proposals(incidentOf({ confidence: 0.5, mitigation: junk }))).toEqual([]);
  });

  it("know other words of the verdict where they have a hook", () => {
    const hooks = [{ do: "check-gpu", command: ["ssh", "{machine}", "dcgmi", "diag"] }];
    expect(proposals(testIncident(), { hooks })).toContain("check-gpu node003");
    // Taking the machine out under another name is as careful.
    const replace = [{ do: "replace-machine", webhook: "http://x" }];
    expect(proposals(testIncident(), { hooks: replace })).toContain("replace-machine node003");
    const unsure = incidentOf({ confidence: 0.4 });
    expect(proposals(unsure, { hooks: replace })).toEqual([]);
  });

  it("merge with what was done: nothing decided is lost, nothing stale stays", () => {
    const [cordon, exclude] = proposeActions(testIncident(), config());
    const done = { ...cordon!, state: "done" as const, outcome: "ok" };
    const again = proposeActions(testIncident(), config({ hooks: [CORDON] }));
    expect(mergeActions([done, exclude!], again)).toEqual([{ ...done, canRun: true }]);
    expect(mergeActions([done], [])).toEqual([done]);
    expect(mergeActions([], again)).toEqual(again);
  });
});

it("counts machines that were, or may have been, taken out", () => {
  const [cordon] = proposeActions(testIncident(), config());
  const of = (change: object, machine: string) => ({ ...cordon!, ...change, data: { machine } });
  const actions = [
    of({ state: "done", changedMs: 50 }, "a"),
    of({ state: "running", changedMs: 150 }, "b"),
    of({ state: "failed", changedMs: 150, outcome: "kubectl ended with status 1" }, "c"),
    of({ state: "failed", changedMs: 150, outcome: "outcome unknown: …" }, "d"),
    of({ state: "dry-run", changedMs: 150 }, "e"),
    of({ state: "done", changedMs: 150, do: "check-gpu" }, "f"),
    of({ state: "done", changedMs: 150, do: "exclude-node" }, "g"),
  ];
  expect(machinesTaken([testIncident({ actions })], 100)).toEqual(["b", "d", "g"]);
});

describe("names of machines", () => {
  it.each(["node003", "gpu-7.rack2.example.com", "A", "10.0.0.7", "node_7", "x".repeat(63)])(
    "%s is plain",
    (name) => expect(isPlainHostName(name)).toBe(true),
  );
  it.each([
    "",
    "-all",
    "--all-namespaces",
    "ALL",
    "all",
    "localhost",
    "node[1-99]",
    "node1,node2",
    "node 1",
    "node1;reboot",
    "$(reboot)",
    "`x`",
    "../etc",
    "node1\n",
    "node1\u0000",
    "nöde",
    "node.",
    ".node",
    "a..b",
    "{job}",
    "x".repeat(64),
    "a.".repeat(130) + "a",
  ])("%j is not", (name) => expect(isPlainHostName(name)).toBe(false));
});

it("matches patterns of hooks, in no time", () => {
  expect(fits("node003", "node*")).toBe(true);
  expect(fits("node003", "node00?")).toBe(true);
  expect(fits("node003", "*3")).toBe(true);
  expect(fits("node003", "no*0*3")).toBe(true);
  expect(fits("node003", "")).toBe(false);
  expect(fits("node003", "node")).toBe(false);
  expect(fits("node003", "ode*")).toBe(false);
  expect(fits("node003", "node.*")).toBe(false);
  expect(fits("a".repeat(250), `${"*a".repeat(60)}b`)).toBe(false);
});

it("refuses malformed hooks at the start", () => {
  const check = (hook: object) => () => checkHooks(config({ hooks: [hook as never] }));
  expect(check(CORDON)).not.toThrow();
  expect(check({ do: "x" })).toThrow(/hooks\[0\] \(x\) needs a command or a webhook/);
  expect(check({ do: "x", command: ["a"], webhook: "http://x" })).toThrow(/one of them/);
  expect(check({ do: "x", command: [] })).toThrow(/program/);
  expect(check({ do: "x", command: ["{machine}"] })).toThrow(/program/);
  expect(check({ do: "x", command: ["a", "{node}"] })).toThrow(/\{node\} is nothing/);
  expect(check({ do: "x", command: ["kubectl", "-o", "jsonpath={.spec}"] })).not.toThrow();
});
