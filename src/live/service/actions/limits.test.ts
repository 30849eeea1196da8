import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTestService, type TestService } from "../../../../test/support/live/action-service.ts";
import { testIncident, testVerdict } from "../../../../test/support/live/incident.ts";
import type { Incident } from "../../../model/incident.ts";
import { hourWords, quorumWords } from "./limits.ts";
import type { ActionsConfig } from "./types.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-limits-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function open(change: Partial<ActionsConfig> = {}): TestService {
  const hooks = [{ do: "cordon-node", command: ["/bin/true"], timeoutSeconds: 20 }];
  return openTestService(folder, { dryRun: false, approval: "required", hooks, ...change });
}
const blaming = (machine: string, job = "llama"): Incident =>
  testIncident({
    id: `${job}.r1.hang.${machine}`,
    job,
    verdict: testVerdict({}, { machine }),
    machines: [machine],
  });
const approve = (service: TestService, incident: Incident) =>
  service.actions.act(incident, incident.actions[0]!.id, "approve", "alice", false);

describe("without a person", () => {
  it("one machine of a job is taken out at once, and the next one waits and says why", async () => {
    const service = open({ approval: "automatic" });
    const both = testVerdict();
    const second = { ...both.suspects[0]!, machine: "node007", ranks: [50] };
    const verdict = { ...both, suspects: [both.suspects[0]!, second] };
    await service.actions.runAutomatic(await service.confirm(testIncident({ verdict })));
    const { actions } = service.incident();
    expect(actions.map(({ target, state }) => [target, state])).toEqual([
      ["node003", "done"],
      ["node007", "proposed"],
    ]);
    expect(actions[1]!.outcome).toBe(
      "not run by itself: node003 of the same job was taken out less than an hour ago, so a person must approve this one",
    );
    // Another job's machine is another matter.
    await service.actions.runAutomatic(await service.confirm(blaming("node009", "moe")));
    expect(service.incident("moe.r1.hang.node009").actions[0]!.state).toBe("done");
    // A person may.
    const id = actions[1]!.id;
    await service.actions.act(service.incident(), id, "approve", "alice", false);
    expect(service.incident().actions.find((one) => one.id === id)!.state).toBe("done");
  });

  it("nothing is taken out of a job whose machines are not known", async () => {
    const service = open({ approval: "automatic" });
    service.machines = null;
    const incident = await service.confirm();
    await service.actions.runAutomatic(incident);
    expect(service.incident().actions[0]!.outcome).toMatch(
      /not known, so a person must approve it$/,
    );
    expect((await approve(service, service.incident())).actions[0]!.state).toBe("done");
  });
});

describe("with a person, too", () => {
  it("a job keeps its quorum", async () => {
    const service = open({ mostMachinesPerDay: 10 });
    service.machines = ["node001", "node002", "node003"];
    const incident = await service.confirm();
    await approve(service, incident);
    const second = await service.confirm(blaming("node001"));
    await expect(approve(service, second)).rejects.toThrow(
      "the job would keep 1 of its 3 machines, and must keep 2: leastMachines is 0.5",
    );
    expect(service.audit().at(-1)).toMatchObject({ what: "refuse", who: "alice" });
  });

  it("counts a spare as a machine, and takes numbers of machines", () => {
    const config = { dryRun: false, approval: "required", hooks: [], leastMachines: 4 } as const;
    const of = (spare: string | null, least = 4): string | null =>
      quorumWords("a", spare, [], ["a", "b", "c", "d"], true, { ...config, leastMachines: least });
    expect(of(null)).toMatch(/keep 3 of its 4 machines, and must keep 4/);
    expect(of("s1")).toBeNull();
    expect(of(null, 3)).toBeNull();
    expect(of(null, 0)).toBeNull();
  });

  it("an hour has so many actions, of all jobs and of one", async () => {
    const service = open({ mostActionsPerHourOfJob: 1, mostMachinesPerDay: 9 });
    await approve(service, await service.confirm());
    const next = await service.confirm(blaming("node001"));
    await expect(approve(service, next)).rejects.toThrow(
      "1 action of job llama within an hour is the most: mostActionsPerHourOfJob is 1",
    );
    expect(
      (await approve(service, await service.confirm(blaming("node002", "moe")))).actions[0]!.state,
    ).toBe("done");
    const config = { dryRun: false, approval: "required", hooks: [] } as const;
    const runs = [{ incident: "a.1" }, { incident: "ab.1" }, { incident: "b.1" }];
    expect(hourWords(runs, "a", { ...config, mostActionsPerHour: 3 })).toMatch(
      /mostActionsPerHour is 3/,
    );
    expect(hourWords(runs, "a", { ...config, mostActionsPerHourOfJob: 2 })).toBeNull();
  });

  it("two approvals at the same moment do not both get the last place", async () => {
    const service = open({ mostActionsPerHourOfJob: 1, mostMachinesPerDay: 9 });
    const [a, b] = [await service.confirm(), await service.confirm(blaming("node001"))];
    const both = await Promise.allSettled([approve(service, a), approve(service, b)]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  it("nothing runs while actions are off, and a dry run does", async () => {
    const service = open();
    const incident = await service.confirm();
    service.off = "actions were switched off by bob";
    await expect(approve(service, incident)).rejects.toThrow("actions were switched off by bob");
    const { id } = incident.actions[0]!;
    const dry = await service.actions.act(incident, id, "approve", "alice", true);
    expect(dry.actions[0]!.state).toBe("dry-run");
  });
});

describe("spares", () => {
  const config = { spares: ["spare-01", "spare-02"], mostMachinesPerDay: 9 };
  const spareOf = ({ actions }: Incident): unknown => actions[0]!.data["replacement"];

  it("are handed out once, each to one machine, and come back when the action is dismissed", async () => {
    const service = open(config);
    const first = await service.confirm();
    expect(first.actions[0]!.why).toMatch(/; replace node003 by spare-01$/);
    await approve(service, first);
    const second = await service.confirm(blaming("node001", "moe"));
    expect(spareOf(second)).toBe("spare-02");
    const third = await service.confirm(blaming("node002", "moe"));
    expect(spareOf(third)).toBeNull();
    expect(third.actions[0]!.why).toMatch(/; no spare machine is free$/);
    await service.actions.act(second, second.actions[0]!.id, "dismiss", "alice", false);
    expect(spareOf(await service.confirm(blaming("node004", "moe")))).toBe("spare-02");
    // The same proposal again keeps its own.
    expect(spareOf(await service.confirm(service.incident()))).toBe("spare-01");
  });
});
