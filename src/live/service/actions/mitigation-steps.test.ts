import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTestService } from "../../../../test/support/live/action-service.ts";
import { testIncident, testVerdict } from "../../../../test/support/live/incident.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Mitigation } from "../../../model/mitigation.ts";
import type { ActionsConfig } from "./types.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-steps-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const MITIGATION: Mitigation = {
  nowMs: 1500,
  healthyMs: 1000,
  bound: 2,
  assumes: [],
  steps: [
    {
      strategy: "S2",
      do: "rebalance-microbatches",
      iterationMs: 1100,
      overheadMs: 0,
      afterIterations: 1,
      why: "replica 2 takes fewer",
      microBatches: [5, 5, 1, 5],
    },
    {
      strategy: "S4",
      do: "restart-without",
      iterationMs: 1000,
      overheadMs: 600_000,
      afterIterations: 1200,
      why: "restart without node003",
      exclude: ["node003"],
    },
  ],
};

const slow = (): Incident =>
  testIncident({
    kind: "fail-slow",
    verdict: testVerdict({ kind: "fail-slow", mitigation: MITIGATION }, { cause: "gpu-slow" }),
  });
const SHARES = {
  best: [5, 5, 1, 5],
  taken: [4, 4, 4, 4],
  weights: [],
  isUneven: false,
  isAllowed: false,
};
const HOOK = { do: "replace-machine", command: ["/bin/true"] };
const open = (change: Partial<ActionsConfig> = {}) =>
  openTestService(folder, { dryRun: false, approval: "automatic", hooks: [HOOK], ...change });
const states = ({ actions }: Incident) => actions.map(({ do: word, state }) => `${word} ${state}`);

describe("steps of a mitigation", () => {
  it("rebalances at once where the job asks, and takes the machine out once that has paid off", async () => {
    const service = open();
    service.shares = SHARES;
    const incident = await service.confirm(slow());
    const replace = incident.actions.find(({ do: word }) => word === "replace-machine")!;
    expect(replace.why).toContain("pays off once the slowdown has cost 10 min");
    expect(states(incident)).toContain("micro-batches proposed");
    await service.actions.runAutomatic(incident);
    expect(states(service.incident())).toEqual(
      expect.arrayContaining(["replace-machine proposed", "micro-batches done"]),
    );
    service.lostMs = 599_000;
    await service.actions.runDue(service.incident());
    expect(states(service.incident())).toContain("replace-machine proposed");
    service.lostMs = 600_000;
    await service.actions.runDue(service.incident());
    expect(states(service.incident())).toContain("replace-machine done");
  });

  it("tries again later what was refused when it was due, and writes the same refusal down once", async () => {
    const service = open();
    service.lostMs = 600_000;
    service.off = "actions were switched off by alice";
    await service.actions.runAutomatic(await service.confirm(slow()));
    const replace = () => service.incident().actions.find((one) => one.do === "replace-machine")!;
    expect(replace().outcome).toBe("not run by itself: actions were switched off by alice");
    const refusals = () => service.audit().filter(({ what }) => what === "refuse").length;
    const before = refusals();
    for (let minute = 1; minute <= 5; minute++) {
      service.laterMs = minute * 60_000;
      await service.actions.runDue(service.incident());
    }
    expect(refusals()).toBe(before);
    service.off = null;
    await service.actions.runDue(service.incident());
    expect(replace().state).toBe("proposed");
    service.laterMs += 60_000;
    await service.actions.runDue(service.incident());
    expect(replace().state).toBe("done");
  });

  it("looks again at what is not due, however many incidents have ended while theirs was not", async () => {
    const service = open();
    const incident = await service.confirm(slow());
    for (let ended = 0; ended < 10_000; ended++)
      await service.actions.runAutomatic({ ...incident, id: `ended-${ended}` });
    await service.actions.runAutomatic(incident);
    service.lostMs = 600_000;
    await service.actions.runDue(service.incident());
    expect(states(service.incident())).toContain("replace-machine done");
  });

  it("runs by itself what somebody has rehearsed before it was due", async () => {
    const service = open();
    const incident = await service.confirm(slow());
    await service.actions.runAutomatic(incident);
    const { id } = incident.actions.find(({ do: word }) => word === "replace-machine")!;
    await service.actions.act(service.incident(), id, "approve", "alice", true);
    expect(states(service.incident())).toContain("replace-machine dry-run");
    service.lostMs = 600_000;
    await service.actions.runDue(service.incident());
    expect(states(service.incident())).toContain("replace-machine done");
  });

  it("a person may act before that; rebalancing can be undone", async () => {
    const service = open({ approval: "required" });
    service.shares = SHARES;
    const incident = await service.confirm(slow());
    const id = incident.actions.find(({ do: word }) => word === "micro-batches")!.id;
    const done = await service.actions.act(incident, id, "approve", "alice", false);
    const action = done.actions.find((one) => one.id === id)!;
    expect(action).toMatchObject({ state: "done", canUndo: true });
    const undone = await service.actions.act(done, id, "undo", "alice", false);
    expect(undone.actions.find((one) => one.id === id)).toMatchObject({
      state: "undone",
      outcome: "replicas of llama take equal shares again",
    });
    const replace = incident.actions.find(({ do: word }) => word === "replace-machine")!;
    await service.actions.act(undone, replace.id, "approve", "alice", false);
    expect(states(service.incident())).toContain("replace-machine done");
  });

  it("proposes no shares against a slow network, nor where they are given out anyway", async () => {
    const network = testIncident({
      verdict: testVerdict({ kind: "fail-slow" }, { cause: "network-slow", type: "link" }),
    });
    for (const [incident, isAllowed] of [
      [network, false],
      [slow(), true],
    ] as const) {
      const service = open({ approval: "required" });
      service.shares = { ...SHARES, isAllowed };
      expect(states(await service.confirm(incident))).not.toContain("micro-batches proposed");
    }
  });

  it("a job whose service dies in the middle is left neither half done nor in doubt", async () => {
    const service = open({ approval: "required" });
    service.shares = SHARES;
    const incident = await service.confirm(slow());
    const actions = incident.actions.map((one) =>
      one.do === "micro-batches" ? { ...one, state: "running" as const } : one,
    );
    const recovered = await service.actions.recover(service.save({ ...incident, actions }));
    const action = recovered.actions.find(({ do: word }) => word === "micro-batches")!;
    expect(action.state).toBe("done");
    expect(action.canUndo).toBe(true);
  });

  it("takes nobody out for an incident that is over", async () => {
    const service = open({ approval: "required" });
    const incident = await service.confirm(slow());
    const over = service.save({ ...incident, state: "resolved" as const });
    const { id } = over.actions.find(({ do: word }) => word === "replace-machine")!;
    await expect(service.actions.act(over, id, "approve", "alice", false)).rejects.toThrow(
      "the incident is over",
    );
  });
});
