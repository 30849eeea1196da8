import { describe, expect, it } from "vitest";
import { testIncident, testVerdict } from "../../test/support/live/incident.ts";
import type { DemoState, Incident } from "../live/api.ts";
import { readTrial } from "./kept-trial.ts";
import { judge, nextTrial, nextTrials } from "./trial.ts";

const FAULT: DemoState["faults"][number] = {
  id: 1,
  kind: "gpu",
  says: "GPU 1 of node002 (rank 17) computes at a third of its pace",
  ranks: [17],
  machine: "node002",
  sinceMs: 10_000,
};
const stateOf = (...faults: DemoState["faults"]): DemoState => ({
  job: "llama",
  gpus: 64,
  iteration: 50,
  isHung: false,
  isReady: faults.length === 0,
  faults,
});
const verdictOf = (change: Parameters<typeof testVerdict>[1]) => testVerdict({}, change);
const known = (change: Partial<Incident>): Map<string, Incident> => {
  const incident = testIncident({ job: "llama", state: "confirmed", ...change });
  return new Map([[incident.id, incident]]);
};
const RIGHT = verdictOf({ type: "rank", ranks: [17], machine: "node002", cause: "gpu-slow" });

it("two faults at once are each found by an incident of its own, and end alone", () => {
  const NIC = { ...FAULT, id: 2, kind: "nic", ranks: [40], sinceMs: 30_000 } as const;
  const right = known({ id: "gpu", verdict: RIGHT, changedMs: 17_000 });
  const one = nextTrials(nextTrials([], stateOf(FAULT), new Map()), stateOf(FAULT), right);
  // The first incident changes again when the second begins: it is no answer to that.
  const changed = known({ id: "gpu", verdict: RIGHT, changedMs: 33_000 });
  const two = nextTrials(one, stateOf(FAULT, NIC), changed);
  expect(two.map(({ found }) => found?.says ?? null)).toEqual(["rank 17, gpu-slow", null]);
  const nic = verdictOf({ type: "nic", ranks: [40], cause: "network-slow" });
  const both = new Map([...changed, ...known({ id: "nic", verdict: nic, changedMs: 36_000 })]);
  const found = nextTrials(two, stateOf(FAULT, NIC), both);
  expect(found.map((each) => each.found)).toMatchObject([
    { isRight: true, afterMs: 7000 },
    { isRight: true, afterMs: 6000 },
  ]);
  expect(nextTrials(found, stateOf(NIC), both).map(({ isFixed }) => isFixed)).toEqual([
    true,
    false,
  ]);
  const over = nextTrials(found, stateOf(), both);
  expect(over.map(({ isFixed }) => isFixed)).toEqual([true, true]);
  const next = { ...FAULT, id: 3, sinceMs: 90_000 };
  expect(nextTrials(over, stateOf(next), new Map()).map(({ fault }) => fault.id)).toEqual([3]);
});

describe("a trial", () => {
  it("counts to when somebody was first named, also for a page that was opened much later", () => {
    const late = known({ verdict: RIGHT, namedMs: 17_000, changedMs: 926_800 });
    const trial = nextTrial(null, stateOf(FAULT), late)!;
    expect(trial.found).toMatchObject({ isRight: true, afterMs: 7000 });
  });

  it("begins with a fault, is found by the first verdict after it, and ends when it is mended", () => {
    const broken = nextTrial(null, stateOf(FAULT), new Map())!;
    expect(broken).toEqual({ fault: FAULT, found: null, isFixed: false });
    const before = known({ verdict: RIGHT, changedMs: 9_999 });
    expect(nextTrial(broken, stateOf(FAULT), before)!.found).toBeNull();
    const found = nextTrial(broken, stateOf(FAULT), known({ verdict: RIGHT, changedMs: 17_300 }))!;
    expect(found.found).toMatchObject({ afterMs: 7300, isRight: true, says: "rank 17, gpu-slow" });
    // Later revisions of the same verdict do not move the time.
    const later = known({ verdict: RIGHT, changedMs: 30_000 });
    expect(nextTrial(found, stateOf(FAULT), later)).toBe(found);
    expect(nextTrial(found, stateOf(), later)).toEqual({ ...found, isFixed: true });
  });

  it("counts the first incident that is right, and says so where it may have been sooner", () => {
    const wrong = verdictOf({ type: "rank", ranks: [16], machine: "node002", cause: "gpu-slow" });
    const all = new Map([
      ...known({ id: "late", verdict: RIGHT, changedMs: 19_000 }),
      ...known({ id: "wrong", verdict: wrong, changedMs: 14_000 }),
      ...known({ id: "first", verdict: RIGHT, changedMs: 17_000 }),
    ]);
    expect(nextTrial(null, stateOf(FAULT), all)!.found).toMatchObject({
      incident: "first",
      afterMs: 7000,
      isAtMost: true,
    });
    const waited = nextTrial(null, stateOf(FAULT), new Map());
    expect(nextTrial(waited, stateOf(FAULT), all)!.found).toMatchObject({ isAtMost: false });
  });

  it("keeps its time when the page is loaded again, and only of the same fault", () => {
    const waited = nextTrial(null, stateOf(FAULT), new Map());
    const found = nextTrial(waited, stateOf(FAULT), known({ verdict: RIGHT, changedMs: 17_300 }))!;
    const text = JSON.stringify({ id: 1, sinceMs: 10_000, found: found.found });
    const again = readTrial(text, FAULT);
    expect(again).toEqual(found);
    const later = known({ verdict: RIGHT, changedMs: 188_000 });
    expect(nextTrial(again, stateOf(FAULT), later)!.found).toMatchObject({ afterMs: 7300 });
    expect(readTrial(text, { ...FAULT, sinceMs: 10_001 })).toBeNull();
    for (const junk of ["", "null", "{", '{"id":1,"sinceMs":10000,"found":{"says":7}}'])
      expect(readTrial(junk, FAULT)).toBeNull();
  });

  it("takes no suspicion and no other job's incident for an answer", () => {
    for (const change of [{ state: "suspected" }, { state: "resolved" }, { job: "other" }] as const)
      expect(
        nextTrial(null, stateOf(FAULT), known({ verdict: RIGHT, changedMs: 17_300, ...change }))!
          .found,
      ).toBeNull();
  });

  it("says that another was named, until the service puts it right", () => {
    const wrong = verdictOf({ type: "rank", ranks: [16], machine: "node002", cause: "gpu-slow" });
    const first = nextTrial(null, stateOf(FAULT), known({ verdict: wrong, changedMs: 15_000 }))!;
    expect(first.found).toMatchObject({ isRight: false, says: "named rank 16 instead" });
    const second = nextTrial(first, stateOf(FAULT), known({ verdict: RIGHT, changedMs: 19_000 }))!;
    expect(second.found).toMatchObject({ isRight: true, afterMs: 9000 });
  });
});

describe("the judge", () => {
  it("wants the cause to be right as well", () => {
    const stall = verdictOf({ type: "rank", ranks: [17], machine: "node002", cause: "cpu-stall" });
    expect(judge(FAULT, stall)).toEqual({
      isRight: false,
      says: "named rank 17, but as cpu-stall",
    });
    expect(judge(FAULT, testVerdict({ suspects: [] }))).toMatchObject({ isRight: false });
  });

  it("wants a link for a link, with ends on both machines, and a machine for a machine", () => {
    const link = { ...FAULT, kind: "link", machine: null, ranks: [8, 9, 24, 25] } as const;
    const named = verdictOf({
      type: "link",
      ranks: [9, 25],
      machine: null,
      cause: "network-slow",
    });
    expect(judge(link, named)).toEqual({
      isRight: true,
      says: "link of ranks 9 and 25, network-slow",
    });
    const nic = verdictOf({ type: "nic", ranks: [9], machine: "node001", cause: "network-slow" });
    expect(judge(link, nic)).toMatchObject({ isRight: false, says: "named rank 9 instead" });
    const machine = { ...FAULT, kind: "machine", ranks: [16, 17, 18] } as const;
    const gone = verdictOf({
      type: "machine",
      ranks: [16, 17],
      machine: "node002",
      cause: "process-gone",
    });
    expect(judge(machine, gone)).toEqual({ isRight: true, says: "node002, process-gone" });
  });
});
