/** The service against a simulated fleet and an API server stub: it cordons, is killed, knows, undoes, and can be stopped. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ActionsConfig } from "../../src/live/service/actions/types.ts";
import type { Incident, IncidentAction } from "../../src/model/incident.ts";
import { type KubernetesStub, startKubernetesStub } from "../support/live/kubernetes-stub.ts";
import { TEST_CERTIFICATE } from "../support/live/tls.ts";
import { type Rehearsal, rehearse, viewOf } from "../support/live-rehearsal.ts";
import { until } from "../support/until.ts";

const NODE = "/api/v1/nodes/node001";

let folder: string;
let stub: KubernetesStub;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "faultline-live-actions-"));
  writeFileSync(join(folder, "ca.crt"), TEST_CERTIFICATE);
  stub = await startKubernetesStub();
  for (const i of [0, 1, 2, 3]) stub.add(`/api/v1/nodes/node00${i}`, {});
});
afterEach(async () => {
  await stub.close();
  rmSync(folder, { recursive: true, force: true });
});

async function slowed(change: Partial<ActionsConfig>): Promise<Rehearsal> {
  const kubernetes = {
    do: ["cordon-node"],
    access: { server: stub.url, token: { text: stub.token }, ca: join(folder, "ca.crt") },
    taint: null,
    pods: null,
    workload: null,
    timeoutSeconds: 5,
  };
  const actions: ActionsConfig = {
    dryRun: false,
    approval: "required",
    hooks: [],
    drivers: { kubernetes },
    leastConfidence: 0.5,
    ...change,
  };
  const rehearsal = await rehearse(
    { gpus: 32, tp: 4, pp: 2, seed: 7 },
    { actions, newId: randomUUID },
  );
  await rehearsal.run(60);
  rehearsal.fleet.played.board.add("gpu-slow:rank=9:severity=3");
  await rehearsal.run(60, () => rehearsal.told.some(({ actions: all }) => all.length > 0));
  return rehearsal;
}

const latest = (rehearsal: Rehearsal): Incident =>
  rehearsal.told.findLast(({ actions }) => actions.length > 0)!;
const cordon = ({ actions }: Incident): IncidentAction =>
  actions.find((one) => one.do === "cordon-node")!;
const actionOf = (rehearsal: Rehearsal): IncidentAction => cordon(latest(rehearsal));
const act = async (rehearsal: Rehearsal, verb: "approve" | "undo"): Promise<IncidentAction> => {
  const { id } = latest(rehearsal);
  const after = await viewOf(rehearsal).act(id, actionOf(rehearsal).id, verb, "alice", false);
  return cordon(after);
};

describe("the live service", () => {
  it("cordons the machine of a slow GPU by itself, knows it after kill -9, and undoes it", async () => {
    const rehearsal = await slowed({ approval: "automatic" });
    await until(() => actionOf(rehearsal).state === "done", "the action is done");
    expect(actionOf(rehearsal)).toMatchObject({
      do: "cordon-node",
      target: "node001",
      canUndo: true,
    });
    expect(stub.object(NODE).spec["unschedulable"]).toBe(true);
    const writes = stub.requests.filter((line) => line.startsWith("PATCH"));
    expect(writes).toEqual([`PATCH ${NODE}`]);
    await rehearsal.restart();
    await rehearsal.run(5);
    const known = (await viewOf(rehearsal).incident(latest(rehearsal).id))!;
    expect(cordon(known)).toMatchObject({ state: "done", canUndo: true });
    expect(await act(rehearsal, "undo")).toMatchObject({ state: "undone" });
    expect(stub.object(NODE).spec).toEqual({});
    const rows = await viewOf(rehearsal).audit({ incident: known.id });
    const own = rows.filter(({ action }) => action === cordon(known).id);
    expect(own.map(({ who, what }) => `${who} ${what}`).toSorted()).toEqual(
      [
        "service propose",
        "service approve",
        "service run",
        "service outcome",
        "alice undo",
        "alice outcome",
      ].toSorted(),
    );
  });

  it("runs nothing while actions are off, after kill -9 too, until somebody allows it", async () => {
    const rehearsal = await slowed({});
    expect(actionOf(rehearsal)).toMatchObject({ state: "proposed", canRun: true });
    await viewOf(rehearsal).switchActions(false, "bob");
    await expect(act(rehearsal, "approve")).rejects.toThrow(
      /^actions were switched off by bob at /,
    );
    await rehearsal.restart();
    await rehearsal.run(5);
    await expect(act(rehearsal, "approve")).rejects.toThrow(
      /^actions were switched off by bob at /,
    );
    expect(viewOf(rehearsal).actionsSwitch()).toMatchObject({ isOn: false, canRun: true });
    expect(stub.requests).toEqual([]);
    await viewOf(rehearsal).switchActions(true, "alice");
    expect(await act(rehearsal, "approve")).toMatchObject({ state: "done" });
    const rows = await viewOf(rehearsal).audit({});
    const words = rows.map(({ who, what }) => `${who} ${what}`);
    expect(words).toEqual(expect.arrayContaining(["bob off", "alice on", "alice run"]));
  });
});
