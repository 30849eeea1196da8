import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  openTestService,
  type TestService,
} from "../../../../../test/support/live/action-service.ts";
import { startReceiver } from "../../../../../test/support/live/alert-receiver.ts";
import type { IncidentAction } from "../../../../model/incident.ts";
import { SCHEMAS } from "../../http/schemas.ts";

let folder: string;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "faultline-webhook-"));
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(canUndo: boolean): TestService {
  const webhook = {
    do: ["replace-machine"],
    url: `${receiver.url}/secret-path`,
    headers: { authorization: "Bearer very-secret" },
    canUndo,
    timeoutSeconds: 5,
  };
  const drivers = { webhook };
  const spares = ["spare-01"];
  return openTestService(folder, {
    dryRun: false,
    approval: "required",
    hooks: [],
    drivers,
    spares,
  });
}

async function act(service: TestService, verb: "approve" | "undo"): Promise<IncidentAction> {
  const incident = service.incident();
  const { id } = incident.actions.find((one) => one.do === "replace-machine")!;
  const after = await service.actions.act(incident, id, verb, "alice", false);
  return after.actions.find((one) => one.do === "replace-machine")!;
}

it("gets the machines, what to exclude, the spare and the reason, and the undoing where it can", async () => {
  const service = open(true);
  await service.confirm();
  expect(await act(service, "approve")).toMatchObject({ state: "done", canUndo: true });
  expect(await act(service, "undo")).toMatchObject({ state: "undone" });
  const [run, undo] = receiver.received.map(({ body }) => JSON.parse(body) as object);
  for (const sent of [run, undo]) expect(SCHEMAS.ActionWebhook.parse(sent)).toEqual(sent);
  expect(run).toEqual({
    verb: "run",
    do: "replace-machine",
    target: "node003",
    job: "llama",
    run: "r1",
    incident: "llama.r1.hang.i120",
    action: expect.stringMatching(/^replace-machine-/),
    reason: "faultline: hang, gpu-hang in job llama, incident llama.r1.hang.i120",
    machines: ["node003"],
    exclude: ["node003"],
    replacement: "spare-01",
    swaps: [],
    placement: null,
    counts: null,
    weights: null,
    rank: 5,
    cause: "gpu-hang",
  });
  expect(undo).toEqual({ ...run, verb: "undo" });
  const ids = receiver.received.map(({ headers }) => headers["x-faultline-delivery"]);
  expect(new Set(ids).size).toBe(2);
  expect(receiver.received[0]!.headers.authorization).toBe("Bearer very-secret");
  expect(JSON.stringify(service.audit())).not.toMatch(/secret/);
});

it("cannot be undone unless the receiver says that it can, and a refusal changes nothing", async () => {
  const service = open(false);
  await service.confirm();
  receiver.answer = (response) => void response.writeHead(403).end("not you");
  expect(await act(service, "approve")).toMatchObject({
    state: "failed",
    outcome: "the receiver answered 403: not you",
  });
  receiver.answer = (response) => void response.end();
  const done = await act(service, "approve");
  expect(done).toMatchObject({ state: "done", outcome: "the receiver took it" });
  await expect(act(service, "undo")).rejects.toMatchObject({ status: 409 });
});
