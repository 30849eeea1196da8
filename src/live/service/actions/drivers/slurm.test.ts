import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openTestService,
  type TestService,
} from "../../../../../test/support/live/action-service.ts";
import { testIncident, testVerdict } from "../../../../../test/support/live/incident.ts";
import type { IncidentAction } from "../../../../model/incident.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-slurm-"));
  program(
    "scontrol",
    `case "$1 $2" in
"--oneliner show")
  [ "$4" = node003 ] || { echo "Node $4 not found"; exit 1; }
  state=IDLE; reason=
  [ -e '${folder}/reason' ] && { state=IDLE+DRAIN; reason=" Reason=$(cat '${folder}/reason') [root@2026-11-18T06:00:00]"; }
  echo "NodeName=node003 Arch=x86_64 State=$state$reason ThreadsPerCore=1" ;;
"update nodename=node003")
  [ -e '${folder}/denied' ] && { echo "slurm_update error: Access/permission denied" >&2; exit 1; }
  echo "$*" >> '${folder}/said'
  case "$3" in state=drain) printf %s "\${4#reason=}" > '${folder}/reason' ;; state=undrain) rm '${folder}/reason' ;; esac
  [ -e '${folder}/dies' ] && kill -9 $$ ;;
requeue*) echo "$*" >> '${folder}/said' ;;
esac
exit 0`,
  );
  program("squeue", `cat '${folder}/jobs' 2>/dev/null; exit 0`);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function program(name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}
const said = (): string[] =>
  existsSync(join(folder, "said"))
    ? readFileSync(join(folder, "said"), "utf8").split("\n").slice(0, -1)
    : [];

function open(words: readonly string[], path = folder): TestService {
  const slurm = {
    do: words,
    scontrol: join(path, "scontrol"),
    squeue: join(path, "squeue"),
    environment: [],
    timeoutSeconds: 20,
  };
  return openTestService(folder, {
    dryRun: false,
    approval: "required",
    hooks: [],
    drivers: { slurm },
  });
}

async function act(
  service: TestService,
  word: string,
  verb: "approve" | "undo" = "approve",
): Promise<IncidentAction> {
  const incident = service.incident();
  const { id } = incident.actions.find((one) => one.do === word)!;
  const after = await service.actions.act(incident, id, verb, "alice", false);
  return after.actions.find((one) => one.do === word)!;
}

const REASON =
  /^update nodename=node003 state=drain reason=faultline: hang, gpu-hang in job llama, incident llama\.r1\.hang\.i120 \[exclude-node-[0-9a-f]+\]$/;

describe("draining a node", () => {
  it("is done once, and taken back", async () => {
    const service = open(["exclude-node"]);
    await service.confirm();
    expect(await act(service, "exclude-node")).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: "node003 is drained in Slurm",
    });
    expect(said()).toEqual([expect.stringMatching(REASON)]);
    expect(await act(service, "exclude-node", "undo")).toMatchObject({
      state: "undone",
      outcome: "node003 is no longer drained in Slurm",
    });
    expect(said().at(-1)).toBe("update nodename=node003 state=undrain");
  });

  it("leaves alone what was drained for another reason", async () => {
    writeFileSync(join(folder, "reason"), "a fan");
    const service = open(["exclude-node"]);
    await service.confirm();
    const action = await act(service, "exclude-node");
    expect(action.outcome).toBe(
      "node003 was drained before, for another reason: nothing was changed",
    );
    expect(action).not.toHaveProperty("canUndo");
    expect(said()).toEqual([]);
  });

  it("says without permission, without the node and without Slurm that nothing was changed", async () => {
    writeFileSync(join(folder, "denied"), "");
    const service = open(["exclude-node"]);
    await service.confirm();
    expect(await act(service, "exclude-node")).toMatchObject({
      state: "failed",
      outcome: expect.stringMatching(/scontrol ended with status 1: .*permission denied$/),
    });
    await service.confirm(testIncident({ verdict: testVerdict({}, { machine: "node077" }) }));
    expect((await act(service, "exclude-node")).outcome).toMatch(
      /^nothing was changed: .*Node node077 not found$/,
    );
    const without = open(["exclude-node"], "/nowhere");
    await without.confirm();
    expect((await act(without, "exclude-node")).outcome).toMatch(
      /^nothing was changed: \/nowhere\/scontrol could not be started: ENOENT$/,
    );
  });

  it("looks where scontrol died: it was done; and after kill -9 of the service", async () => {
    writeFileSync(join(folder, "dies"), "");
    const service = open(["exclude-node"]);
    const incident = await service.confirm();
    expect(await act(service, "exclude-node")).toMatchObject({ state: "done", canUndo: true });
    const running = { ...incident.actions[0]!, state: "running" as const };
    const left = { ...incident, actions: [running] };
    const later = open(["exclude-node"]);
    later.save(left);
    expect((await later.actions.recover(left)).actions[0]).toMatchObject({
      state: "done",
      outcome: "node003 is drained in Slurm (the service stopped while it was running)",
    });
    rmSync(join(folder, "reason"));
    expect((await later.actions.recover(left)).actions[0]).toMatchObject({
      state: "failed",
      outcome: expect.stringMatching(/^it was not done: node003 is not drained/),
    });
  });
});

describe("requeuing a job", () => {
  const verdict = testVerdict({
    actions: [
      { do: "restart-job", target: "llama", why: "the others only wait" },
      { do: "replace-machine", target: "node003", why: "take the machine out" },
    ],
  });

  it("finds its number by its name, and says where there is none or are several", async () => {
    const service = open(["restart-job"]);
    await service.confirm(testIncident({ verdict }));
    expect((await act(service, "restart-job")).outcome).toBe(
      "nothing was changed: Slurm has no running job llama",
    );
    writeFileSync(join(folder, "jobs"), "4711\n4712\n");
    expect((await act(service, "restart-job")).outcome).toMatch(/Slurm has 2 running jobs llama$/);
    writeFileSync(join(folder, "jobs"), "4711\n");
    const action = await act(service, "restart-job");
    expect(action).toMatchObject({ state: "done", outcome: "job 4711 is requeued in Slurm" });
    expect(action).not.toHaveProperty("canUndo");
    expect(said()).toEqual(["requeue 4711"]);
  });

  it("comes after the drain where the machine is replaced", async () => {
    const service = open(["replace-machine"]);
    await service.confirm(testIncident({ verdict }));
    expect(await act(service, "replace-machine")).toMatchObject({
      state: "failed",
      canUndo: true,
      outcome: "node003 is drained in Slurm; nothing was changed: Slurm has no running job llama",
    });
    writeFileSync(join(folder, "jobs"), "4711\n");
    expect(await act(service, "replace-machine")).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: "node003 was drained by this action already; job 4711 is requeued in Slurm",
    });
    expect(said().map((line) => line.split(" ")[0])).toEqual(["update", "requeue"]);
  });
});
