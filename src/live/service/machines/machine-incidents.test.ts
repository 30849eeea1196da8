import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { PlacedJob } from "../../../pipeline/machines-by-job.ts";
import { machineVerdict } from "../../../pipeline/machines.ts";
import { testFleet } from "../../../../test/support/methods/fleet.ts";
import { startKubernetesStub } from "../../../../test/support/live/kubernetes-stub.ts";
import { TEST_CERTIFICATE } from "../../../../test/support/live/tls.ts";
import { makeActions } from "../actions/actions.ts";
import type { ActionsConfig } from "../actions/types.ts";
import { MachineIncidents, type SeenMachine } from "./machine-incidents.ts";

const RANKS = [24, 25].map((rank) => ({ rank, gpu: rank - 24 }));
const JOB: PlacedJob = {
  job: "llm",
  run: "r7",
  startedMs: 0,
  machines: new Map([["node003", { stage: "stage 0", ranks: RANKS }]]),
};

/** A machine whose GPUs are throttled, and the verdict that the metrics give. */
async function seenMachine(job: PlacedJob | null = JOB): Promise<SeenMachine> {
  const metrics = ["gpu-clocks", "gpu-power-draw", "gpu-tensor-core-activity"];
  const changes = metrics.map((metric) => ({
    machine: 3,
    metric,
    fromS: 400,
    to: (x: number) => 0.3 * x,
  }));
  const fleet = testFleet({ machines: 12, stepS: 5, metrics, changes });
  const { report, verdictOf } = await machineVerdict(fleet, () => RANKS);
  expect(report.faulty.map(({ machine }) => machine)).toEqual(["node003"]);
  return { job, faulty: report.faulty[0]!, verdict: (): Verdict => verdictOf("node003") };
}

const CONFIG: ActionsConfig = {
  dryRun: true,
  approval: "required",
  hooks: [{ do: "cordon-node", command: ["/bin/true"], timeoutSeconds: 60, environment: [] }],
};

function certificateFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "faultline-machines-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "ca.crt"), TEST_CERTIFICATE);
  return join(folder, "ca.crt");
}

function watching(
  known: { incidents: Incident[]; recent: Incident[] },
  accused: ReadonlySet<string> = new Set(),
  config = CONFIG,
) {
  let nowMs = 1_795_000_000_000;
  const saved: Incident[] = [];
  const audit: string[] = [];
  const actions = makeActions(config, {
    nowMs: () => nowMs,
    fetch,
    newId: () => "id",
    environment: {},
    log: () => undefined,
    audit: async (row) => void audit.push(row.what),
    taken: async () => [],
    runs: async () => [],
    machines: () => null,
    shares: () => null,
    lostMs: () => 0,
    sparesNamed: async () => [],
    switchedOff: async () => null,
    pause: async () => undefined,
    put: async (id, action) => (await incidents.putAction(id, action))!,
  });
  const incidents = new MachineIncidents(
    {
      nowMs: () => nowMs,
      relapseMs: 600_000,
      save: async (incident) => void saved.push(incident),
      actions,
      accused: () => accused,
    },
    known,
  );
  const compared = () => ({ job: "llm" });
  const call = async (...seen: SeenMachine[]) => {
    nowMs += 60_000;
    return await incidents.observe(seen, compared);
  };
  return { incidents, saved, audit, actions, call, wait: (ms: number) => (nowMs += ms) };
}

const NOTHING = { incidents: [], recent: [] };

describe("incidents of machines", () => {
  it("are none where an incident of a job accuses the machine, or did until a short while ago: metrics lag", async () => {
    const accused = new Set(["node003.cluster.local"]);
    const { incidents, saved, call } = watching(NOTHING, accused);
    const seen = await seenMachine();
    await call(seen);
    await call(seen);
    expect([incidents.open, saved]).toEqual([[], []]);
    accused.clear();
    await call(seen);
    expect(incidents.open).toHaveLength(1);
  });

  it("are suspected, confirmed with proposed actions, and resolved, as incidents of the job", async () => {
    const { incidents, saved, audit, call } = watching(NOTHING);
    const seen = await seenMachine();
    expect(await call(seen)).toEqual([{ id: saved[0]!.id, machine: "node003" }]);
    expect(saved[0]).toMatchObject({
      job: "llm",
      run: "r7",
      state: "suspected",
      machines: ["node003"],
    });
    await call(seen);
    expect(saved.map(({ state }) => state)).toEqual(["suspected", "confirmed", "confirmed"]);
    const [open] = incidents.open;
    expect(open).toMatchObject({ kind: "faulty-machine", machines: ["node003"], ranks: [24, 25] });
    expect(open!.actions.map((one) => [one.do, one.target, one.state, one.canRun])).toEqual([
      ["cordon-node", "node003", "proposed", true],
    ]);
    expect(audit).toEqual(["propose"]);
    await call();
    expect(incidents.open).toHaveLength(1);
    await call();
    expect(incidents.open).toEqual([]);
    expect(saved.at(-1)).toMatchObject({
      state: "resolved",
      summary: "over: node003 is like its peers again",
    });
    expect(saved.map(({ revision }) => revision)).toEqual([1, 2, 3, 4]);
  });

  it("run an approved action and keep what came of it", async () => {
    const { incidents, call, actions } = watching(NOTHING);
    const seen = await seenMachine();
    await call(seen);
    await call(seen);
    const [open] = incidents.open as [Incident];
    const [action] = open.actions as [IncidentAction];
    await actions.act(open, action.id, "approve", "ada", true);
    expect(incidents.open[0]!.actions[0]).toMatchObject({ state: "dry-run" });
  });

  it("are acted on, resolved, and undone, by a driver and with a row for each step", async () => {
    const stub = await startKubernetesStub();
    stub.add("/api/v1/nodes/node003", {});
    const access = { server: stub.url, token: { text: stub.token }, ca: certificateFile() };
    const kubernetes = {
      do: ["cordon-node"],
      access,
      taint: null,
      pods: null,
      workload: null,
      timeoutSeconds: 5,
    };
    try {
      const { incidents, call, actions, audit } = watching(NOTHING, new Set(), {
        dryRun: false,
        approval: "automatic",
        hooks: [],
        drivers: { kubernetes },
      });
      const seen = await seenMachine();
      await call(seen);
      await call(seen);
      const [open] = incidents.open as [Incident];
      const [action] = open.actions as [IncidentAction];
      // Monitoring alone is not sure enough to act by itself; a person may.
      expect(open.verdict!.confidence).toBeLessThan(0.8);
      expect(action).toMatchObject({ do: "cordon-node", state: "proposed", canRun: true });
      const done = await actions.act(open, action.id, "approve", "ada", false);
      expect(done.actions[0]).toMatchObject({ state: "done", outcome: "node003 is cordoned" });
      await call();
      await call();
      expect(incidents.open).toEqual([]);
      const over = incidents.shown.find(({ id }) => id === open.id)!;
      const undone = await actions.act(over, action.id, "undo", "ada", false);
      expect(undone).toMatchObject({ state: "resolved", actions: [{ state: "undone" }] });
      expect(stub.object("/api/v1/nodes/node003").spec).toEqual({});
      expect(audit).toEqual(["propose", "approve", "run", "outcome", "undo", "outcome"]);
    } finally {
      await stub.close();
    }
  });

  it("come back as relapses within the time for it, and as new incidents later", async () => {
    const { incidents, saved, call, wait } = watching(NOTHING);
    const seen = await seenMachine();
    for (const one of [[seen], [seen], [], []]) await call(...one);
    const { id } = saved[0]!;
    await call(seen);
    expect(incidents.open).toEqual([]);
    await call(seen);
    expect(incidents.open[0]).toMatchObject({ id, state: "relapsed", relapses: 1 });
    await call();
    await call();
    wait(3_600_000);
    await call({ ...seen, faulty: { ...seen.faulty, sinceS: seen.faulty.sinceS + 4000 } });
    expect(incidents.open[0]).toMatchObject({ state: "suspected", relapses: 0 });
    expect(incidents.open[0]!.id).not.toBe(id);
  });

  it("go over to the next service: one that was suspected is confirmed there", async () => {
    const first = watching(NOTHING);
    const seen = await seenMachine();
    await first.call(seen);
    const state = JSON.parse(JSON.stringify(first.incidents.state)) as typeof NOTHING;
    const second = watching(state);
    await second.call(seen);
    expect(second.incidents.open.map((one) => [one.id, one.state])).toEqual([
      [first.saved[0]!.id, "confirmed"],
    ]);
  });

  it("say so where the machine has left the job", async () => {
    const { saved, call } = watching(NOTHING);
    const seen = await seenMachine({ ...JOB, job: "other" });
    await call(seen);
    await call();
    await call();
    expect(saved.at(-1)!.summary).toBe("over: node003 is no longer compared in job other");
  });
});
