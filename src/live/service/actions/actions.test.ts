import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { testIncident, testVerdict } from "../../../../test/support/live/incident.ts";
import { startReceiver } from "../../../../test/support/live/alert-receiver.ts";
import { openTestService, type TestService } from "../../../../test/support/live/action-service.ts";
import type { ActionHook, ActionsConfig } from "./types.ts";
import { until } from "../../../../test/support/until.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "faultline-actions-"));
});
afterEach(() => {
  delete process.env["FAULTLINE_TEST_KUBECONFIG"];
  rmSync(folder, { recursive: true, force: true });
});

/** A program that says what it was given, in `said`, once a run; then does what the test wants. */
function program(then = ""): string {
  const path = join(folder, "drain");
  writeFileSync(
    path,
    `#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word"; done >> '${folder}/said'
env > '${folder}/environment'
${then}
`,
  );
  chmodSync(path, 0o755);
  return path;
}
const said = (): string[] =>
  existsSync(join(folder, "said"))
    ? readFileSync(join(folder, "said"), "utf8").split("\n").slice(0, -1)
    : [];

function open(hook: Partial<ActionHook>, change: Partial<ActionsConfig> = {}): TestService {
  const hooks = [{ do: "cordon-node", timeoutSeconds: 20, ...hook }];
  return openTestService(folder, { dryRun: false, approval: "required", hooks, ...change });
}
const only = ({ actions }: Incident): IncidentAction => actions[0]!;
const approve = (service: TestService, incident: Incident, dryRun = false): Promise<Incident> =>
  service.actions.act(incident, only(incident).id, "approve", "alice", dryRun);
const trail = (service: TestService): string[] =>
  service.audit().map(({ who, what }) => `${who} ${what}`);
const suspectOn = (machine: string, id = "llama.r1.hang.i120"): Incident =>
  testIncident({ id, machines: [machine], verdict: testVerdict({}, { machine }) });

/** Gone, or dead and not yet collected by whoever inherited it. */
function isGone(pid: number): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return true;
  }
}

describe("a command", () => {
  it("gets its words as they are, and little of the environment", async () => {
    process.env["FAULTLINE_TEST_KUBECONFIG"] = "/k";
    const command = [
      program("echo drained; echo '\u001b[31mred' >&2"),
      "nodename={machine}",
      "reason={reason}",
      "{incident}",
      "rank {rank} of {job}; $(touch x) `touch y` | * '",
    ];
    const service = open({ command, environment: ["FAULTLINE_TEST_KUBECONFIG"] });
    const incident = await service.confirm();
    const after = await approve(service, incident);
    expect(said()).toEqual([
      "nodename=node003",
      "reason=faultline: hang, gpu-hang in job llama, incident llama.r1.hang.i120",
      "llama.r1.hang.i120",
      "rank 5 of llama; $(touch x) `touch y` | * '",
    ]);
    expect(only(after)).toMatchObject({
      state: "done",
      outcome: `${command[0]} ended well: drained | \ufffd[31mred`,
    });
    expect(only(service.incident())).toEqual(only(after));
    const names = readFileSync(join(folder, "environment"), "utf8").match(/^[A-Za-z_]\w*(?==)/gm);
    // The shell adds some of its own.
    const given = names!.filter((name) => !["PWD", "OLDPWD", "SHLVL", "_"].includes(name));
    expect(given.sort()).toEqual(
      ["FAULTLINE_TEST_KUBECONFIG", "HOME", "PATH"].filter(
        (name) => process.env[name] !== undefined,
      ),
    );
    expect(trail(service)).toEqual([
      "service propose",
      "alice approve",
      "alice run",
      "alice outcome",
    ]);
    expect(service.audit()[2]!.detail).toContain('"nodename=node003"');
  });

  it.each(["node1; reboot", "-all", "ALL", "node[1-99]", "$(reboot)", "a\nb"])(
    "is not run for a machine called %j",
    async (machine) => {
      const service = open({ command: [program(), "{machine}"] });
      const incident = await service.confirm(suspectOn(machine));
      expect(only(incident).canRun).toBe(false);
      await expect(approve(service, incident)).rejects.toThrow(/is no plain host name/);
      // Nor where the record says that it could.
      const forged = service.save({
        ...incident,
        actions: [{ ...only(incident), canRun: true, target: "node003" }],
      });
      await expect(approve(service, forged)).rejects.toMatchObject({ status: 409 });
      expect(said()).toEqual([]);
      expect(trail(service)).toContain("alice refuse");
      expect(
        service
          .audit()
          .map(({ detail }) => detail)
          .join(),
      ).not.toContain("\n");
    },
  );

  it("says how it failed", async () => {
    const bad = open({ command: [program("echo no such node; exit 3"), "{machine}"] });
    const after = await approve(bad, await bad.confirm());
    expect(only(after)).toMatchObject({ state: "failed" });
    expect(only(after).outcome).toMatch(/drain ended with status 3: no such node$/);
    const none = open({ command: [join(folder, "nothing"), "{machine}"] });
    const lacking = await approve(none, await none.confirm());
    expect(only(lacking).outcome).toMatch(/nothing could not be started: ENOENT$/);
    const rank = open({ command: [program(), "{counts}"] });
    await expect(approve(rank, await rank.confirm())).rejects.toThrow(
      "its hook wants {counts}, which is not known here",
    );
  });

  it("is heard to its end, but only its last words are kept", async () => {
    const flood = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done";
    const service = open({ command: [program(flood), "{machine}"] });
    const { outcome, state } = only(await approve(service, await service.confirm()));
    expect(state).toBe("done");
    expect(outcome.length).toBeLessThanOrEqual(4096);
    expect(outcome).toMatch(/ended well: …/);
    expect(outcome).toMatch(/line 29\d\d/);
  });

  it("that takes too long is ended with all its children", async () => {
    const stubborn = `sh -c 'trap "" TERM; echo $$ > "${folder}/grandchild"; while :; do sleep 0.1; done' &
echo $$ > '${folder}/child'
wait`;
    const service = open({ command: [program(stubborn), "{machine}"], timeoutSeconds: 1 });
    const incident = await service.confirm();
    const { state, outcome } = only(await approve(service, incident));
    expect(state).toBe("failed");
    expect(outcome).toMatch(/^outcome unknown: .*drain was ended after 1 s$/);
    for (const name of ["child", "grandchild"]) {
      const pid = Number(readFileSync(join(folder, name), "utf8"));
      expect(pid).toBeGreaterThan(1);
      await until(() => isGone(pid), `the end of the ${name}`);
    }
  });

  it("is not waited for when it leaves somebody behind", async () => {
    const daemon = `sleep 300 & echo $! > '${folder}/daemon'; echo ok`;
    const service = open({ command: [program(daemon), "{machine}"], timeoutSeconds: 120 });
    const { state, outcome } = only(await approve(service, await service.confirm()));
    process.kill(Number(readFileSync(join(folder, "daemon"), "utf8")));
    expect(state).toBe("done");
    expect(outcome).toMatch(/ended well: ok$/);
  });
});

describe("a webhook", () => {
  it("gets the action once, and its answer is kept", async () => {
    const receiver = await startReceiver();
    try {
      receiver.answer = (response) => void response.end("cordoned\u001b[2J");
      const service = open({ webhook: `${receiver.url}/secret-path` });
      const after = await approve(service, await service.confirm());
      expect(only(after)).toMatchObject({
        state: "done",
        outcome: "the hook took it: cordoned\ufffd[2J",
      });
      expect(receiver.received).toHaveLength(1);
      expect(JSON.parse(receiver.received[0]!.body)).toMatchObject({
        job: "llama",
        incident: "llama.r1.hang.i120",
        action: { do: "cordon-node", target: "node003", data: { machine: "node003", rank: 5 } },
      });
      expect(JSON.stringify(service.audit())).not.toContain("secret-path");
    } finally {
      await receiver.close();
    }
  });

  it("that redirects or says nothing has failed", async () => {
    const receiver = await startReceiver();
    try {
      receiver.answer = (response) =>
        void response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end();
      const service = open({ webhook: receiver.url });
      const after = await approve(service, await service.confirm());
      expect(only(after)).toMatchObject({
        state: "failed",
        outcome: "the hook answered 302: redirects are not followed",
      });
      expect(receiver.received).toHaveLength(1);
      receiver.answer = () => {};
      const silent = open({ webhook: receiver.url, timeoutSeconds: 1.5 });
      const later = await approve(silent, await silent.confirm());
      expect(only(later).outcome).toBe("outcome unknown: the hook gave no answer within 1.5 s");
      expect(receiver.received).toHaveLength(2);
    } finally {
      await receiver.close();
    }
  });
});

describe("approval", () => {
  it("of a rehearsal says exactly what would be run, and runs nothing", async () => {
    const service = open({ command: [program(), "{machine}"] }, { dryRun: true });
    const after = await approve(service, await service.confirm());
    expect(only(after)).toMatchObject({
      state: "dry-run",
      outcome: "",
      would: `run ["${folder}/drain","node003"] within 20 s`,
    });
    expect(trail(service)).toEqual(["service propose", "alice dry-run"]);
    // The same where only the request asks for one; then in earnest.
    const earnest = open({ command: [program(), "{machine}"] });
    const rehearsed = await approve(earnest, await earnest.confirm(), true);
    expect(only(rehearsed).state).toBe("dry-run");
    expect(said()).toEqual([]);
    expect(only(await approve(earnest, rehearsed)).state).toBe("done");
    expect(said()).toEqual(["node003"]);
  });

  it("of a rehearsal after a failure keeps the failure, however often it is asked for", async () => {
    const service = open({ command: ["/bin/false"] });
    const failed = only(await approve(service, await service.confirm()));
    expect(failed.state).toBe("failed");
    for (let i = 0; i < 3; i++) await approve(service, service.incident(), true);
    expect(only(service.incident())).toEqual({
      ...failed,
      would: 'run ["/bin/false"] within 20 s',
    });
    const again = only(await approve(service, service.incident()));
    expect(again).toMatchObject({ state: "failed", outcome: failed.outcome });
    expect(again).not.toHaveProperty("would");
  });

  it("without a hook is refused, as is what is not there or was dismissed", async () => {
    const service = openTestService(folder, { dryRun: false, approval: "required", hooks: [] });
    const incident = await service.confirm();
    expect(incident.actions.map(({ canRun }) => canRun)).toEqual([false, false]);
    await expect(approve(service, incident)).rejects.toMatchObject({
      status: 409,
      message: "no hook and no driver is configured for cordon-node",
    });
    const missing = service.actions.act(incident, "x", "approve", "alice", false);
    await expect(missing).rejects.toMatchObject({ status: 404 });
    const [first] = incident.actions;
    const after = await service.actions.act(incident, first!.id, "dismiss", "bob", false);
    expect(only(after).state).toBe("dismissed");
    await expect(approve(service, after)).rejects.toThrow("the action is dismissed already");
    expect(trail(service)).toContain("bob dismiss");
  });

  it("is refused where the verdict has changed since", async () => {
    const service = open({ command: [program(), "{machine}"] });
    const { actions } = await service.confirm();
    const other = service.save({ ...suspectOn("node007"), actions });
    await expect(approve(service, other)).rejects.toThrow(/does not, or no longer, name it/);
    const unsure = testIncident({ actions, verdict: testVerdict({ confidence: 0.5 }) });
    await expect(approve(service, service.save(unsure))).rejects.toMatchObject({ status: 409 });
    expect(said()).toEqual([]);
  });

  it("runs once: not for two at a time, not for an older record", async () => {
    const service = open({ command: [program("sleep 0.3"), "{machine}"] });
    const incident = await service.confirm();
    const both = await Promise.allSettled([approve(service, incident), approve(service, incident)]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await expect(approve(service, incident)).rejects.toThrow("the action was run already");
    await expect(approve(service, service.incident())).rejects.toMatchObject({ status: 409 });
    // Neither after a restart.
    const next = open({ command: [program(), "{machine}"] });
    await expect(approve(next, next.incident())).rejects.toThrow("the action is done already");
    expect(said()).toEqual(["node003"]);
  });

  it("needs the audit trail: nothing runs that is not written down first", async () => {
    const service = open({ command: [program(), "{machine}"] });
    const incident = await service.confirm();
    service.isAuditDown = true;
    await expect(approve(service, incident)).rejects.toMatchObject({ status: 503 });
    await expect(
      service.actions.act(incident, only(incident).id, "dismiss", "alice", false),
    ).rejects.toMatchObject({ status: 503 });
    expect(said()).toEqual([]);
    service.isAuditDown = false;
    // The program itself sees its row, and the record that says it is running.
    const look = `cp '${folder}/audit.jsonl' '${folder}/seen'; cp '${folder}'/*.incident.json '${folder}/record'`;
    const looking = open({ command: [program(look), "{machine}"] });
    await approve(looking, incident);
    expect(readFileSync(join(folder, "seen"), "utf8")).toContain('"what":"run"');
    const seen = JSON.parse(readFileSync(join(folder, "record"), "utf8")) as Incident;
    expect(only(seen).state).toBe("running");
  });

  it("stops at so many machines of a job a day, also at the same moment", async () => {
    const service = open({ command: [program("sleep 0.2"), "{machine}"] });
    const all: Incident[] = [];
    for (const i of [1, 2, 3, 4])
      all.push(await service.confirm(suspectOn(`node00${i}`, `llama.r1.hang.i${i}`)));
    const results = await Promise.allSettled(all.map((incident) => approve(service, incident)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    const refused = results.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(String(refused.reason)).toMatch(/2 machines of job llama .*mostMachinesPerDay is 2/);
    expect(said()).toHaveLength(2);
    // A machine that is out already may be taken out in another way.
    const again = open({ command: [program(), "{machine}"], do: "exclude-node" });
    for (const { id } of all) again.save(service.incident(id));
    const out = said()[0]!;
    const more = await again.confirm(suspectOn(out, "llama.r1.hang.i9"));
    expect(only(await approve(again, more)).state).toBe("done");
  });
});

describe("by itself", () => {
  it("runs only what is confirmed and sure, and only where that is configured", async () => {
    const command = [program(), "{machine}"];
    const required = open({ command });
    await required.actions.runAutomatic(await required.confirm());
    expect(said()).toEqual([]);
    const service = open({ command }, { approval: "automatic" });
    const incident = await service.confirm();
    await service.actions.runAutomatic({ ...incident, state: "suspected" });
    await service.actions.runAutomatic({ ...incident, state: "resolved" });
    await service.actions.runAutomatic({
      ...incident,
      verdict: testVerdict({ confidence: 0.7 }),
    });
    expect(said()).toEqual([]);
    await service.actions.runAutomatic(incident);
    await service.actions.runAutomatic(incident);
    await service.actions.runAutomatic(service.incident());
    expect(said()).toEqual(["node003"]);
    expect(only(service.incident()).state).toBe("done");
    expect(trail(service)).toContain("service approve");
    // A relapse proposes the same again: it was done.
    const relapsed = { ...service.incident(), state: "relapsed" as const, relapses: 1 };
    await service.actions.runAutomatic(await service.confirm(relapsed));
    expect(said()).toEqual(["node003"]);
  });

  it("rehearses once where dry runs are configured", async () => {
    const service = open(
      { command: [program(), "{machine}"] },
      { approval: "automatic", dryRun: true },
    );
    await service.actions.runAutomatic(await service.confirm());
    await service.actions.runAutomatic(service.incident());
    expect(said()).toEqual([]);
    expect(trail(service)).toEqual(["service propose", "service dry-run"]);
  });

  it("does not run again what was running when the service was killed", async () => {
    const config: ActionsConfig = {
      dryRun: false,
      approval: "automatic",
      hooks: [
        {
          do: "cordon-node",
          command: [program(`echo $$ > '${folder}/child'; sleep 60`), "{machine}"],
          timeoutSeconds: 60,
        },
      ],
    };
    const source = fileURLToPath(
      new URL("../../../../test/support/live/action-service.ts", import.meta.url),
    );
    const args = ["--import", "tsx", source, folder, JSON.stringify(config)];
    const process_ = spawn(process.execPath, args, { stdio: "inherit" });
    try {
      await until(
        () => existsSync(join(folder, "child")) || process_.exitCode !== null,
        "the action is running",
      );
      process_.kill("SIGKILL");
      await once(process_, "exit");
      const service = openTestService(folder, config);
      const found = service.incident();
      expect(only(found).state).toBe("running");
      const after = await service.actions.recover(found);
      expect(only(after)).toMatchObject({ state: "failed" });
      expect(only(after).outcome).toMatch(/^outcome unknown: the service stopped/);
      await service.actions.runAutomatic(after);
      await service.actions.runAutomatic(await service.confirm(after));
      expect(said()).toEqual(["node003"]);
      expect(trail(service)).toEqual([
        "service propose",
        "service approve",
        "service run",
        "service recover",
      ]);
      // It may have been taken out: it counts.
      expect(only(await service.actions.recover(service.incident())).state).toBe("failed");
    } finally {
      process_.kill("SIGKILL");
      const child = join(folder, "child");
      if (existsSync(child)) process.kill(-Number(readFileSync(child, "utf8")), "SIGKILL");
    }
  });
});
