/** Slurm's driver against a real slurmctld: nodes that no slurmd serves can be drained and resumed all the same. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { IncidentAction } from "../../src/model/incident.ts";
import { freePort } from "../support/free-port.ts";
import { programPath, unlessThere } from "../support/lacking.ts";
import { openTestService, type TestService } from "../support/live/action-service.ts";
import { testIncident, testVerdict } from "../support/live/incident.ts";
import { until } from "../support/until.ts";

/** Debian's package calls it slurmctld-wlm until it is installed. */
const PROGRAMS = [
  ["munged"],
  ["mungekey"],
  ["slurmctld", "slurmctld-wlm"],
  ["scontrol"],
  ["squeue"],
];
const [munged, mungekey, slurmctld, scontrol, squeue] = PROGRAMS.map((names) =>
  programPath(...names),
) as [string, string, string, string, string];
const isThere = [munged, mungekey, slurmctld, scontrol, squeue].every((path) => path !== null);
const packages = "slurmctld slurm-client slurm-wlm-basic-plugins munge";
const lacking = unlessThere(isThere, "Slurm and munge", packages);

/** The folder of its plug-ins where it was unpacked and not installed; else null. */
function unpackedPlugins(): string | null {
  const lib = join(dirname(slurmctld), "../lib");
  if (lib === "/usr/lib" || !existsSync(lib)) return null;
  const found = readdirSync(lib).map((name) => join(lib, name, "slurm-wlm"));
  return found.find((path) => existsSync(path)) ?? null;
}

describe.skipIf(lacking !== "")(`Slurm${lacking}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "faultline-slurmctld-"));
  const children: ChildProcess[] = [];
  const plugins = isThere ? unpackedPlugins() : null;
  const env = {
    ...process.env,
    SLURM_CONF: join(folder, "slurm.conf"),
    ...(plugins === null ? {} : { LD_LIBRARY_PATH: `${dirname(plugins)}:${plugins}` }),
  };
  let said = "";

  beforeAll(async () => {
    const at = (name: string): string => join(folder, name);
    mkdirSync(at("state"));
    execFileSync(mungekey, ["--create", `--keyfile=${at("key")}`], { env });
    const words = [
      "--foreground",
      "--force",
      `--key-file=${at("key")}`,
      `--socket=${at("socket")}`,
    ];
    start(munged, [...words, `--pid-file=${at("munged.pid")}`, `--seed-file=${at("seed")}`]);
    writeFileSync(
      at("slurm.conf"),
      [
        "ClusterName=faultline",
        `SlurmctldHost=${hostname().split(".")[0]}(127.0.0.1)`,
        `SlurmctldPort=${await freePort()}`,
        `SlurmUser=${userInfo().username}`,
        `AuthInfo=socket=${at("socket")}`,
        "CredType=cred/munge",
        `StateSaveLocation=${at("state")}`,
        `SlurmctldPidFile=${at("slurmctld.pid")}`,
        "ProctrackType=proctrack/linuxproc",
        ...(plugins === null ? [] : [`PluginDir=${plugins}`]),
        "NodeName=node[001-004] NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN",
        "PartitionName=all Nodes=ALL Default=YES",
        "",
      ].join("\n"),
    );
    start(slurmctld, ["-D", "-c"]);
    await until(() => stateOf("node003") !== null, "slurmctld answers").catch((error) => {
      throw new Error(`${String(error)}: ${said.slice(-2000)}`);
    });
  }, 60_000);
  afterAll(async () => {
    for (const child of children.reverse()) child.kill("SIGTERM");
    await Promise.all(children.map((child) => new Promise((done) => child.once("exit", done))));
    rmSync(folder, { recursive: true, force: true });
  });

  function start(program: string, words: readonly string[]): void {
    const child = spawn(program, words, {
      env,
      cwd: dirname(folder),
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.on("data", (text: Buffer) => (said += String(text)));
    child.stderr.on("data", (text: Buffer) => (said += String(text)));
    children.push(child);
  }

  function stateOf(node: string): string | null {
    try {
      const words = ["--oneliner", "show", "node", node];
      const text = execFileSync(scontrol, words, { env, encoding: "utf8", stdio: "pipe" });
      return / State=(\S+)/.exec(text)?.[1] ?? null;
    } catch {
      return null;
    }
  }

  function open(): TestService {
    for (const name of ["SLURM_CONF", "LD_LIBRARY_PATH"] as const)
      if (env[name] !== undefined) process.env[name] = env[name];
    const slurm = {
      do: ["exclude-node", "restart-job"],
      scontrol,
      squeue,
      environment: ["SLURM_CONF", "LD_LIBRARY_PATH"],
      timeoutSeconds: 30,
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
    verb: "approve" | "undo",
    word = "exclude-node",
  ): Promise<IncidentAction> {
    const incident = service.incident();
    const { id } = incident.actions.find((one) => one.do === word)!;
    const after = await service.actions.act(incident, id, verb, "alice", false);
    return after.actions.find((one) => one.do === word)!;
  }

  it("drains a node once, knows it after a restart of the service, and resumes it", async () => {
    const service = open();
    const incident = await service.confirm();
    expect(await act(service, "approve")).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: "node003 is drained in Slurm",
    });
    expect(stateOf("node003")).toContain("DRAIN");
    expect(stateOf("node002")).not.toContain("DRAIN");
    const running = {
      ...incident,
      actions: [{ ...incident.actions[0]!, state: "running" as const }],
    };
    const later = open();
    later.save(running);
    expect((await later.actions.recover(running)).actions[0]).toMatchObject({
      state: "done",
      canUndo: true,
    });
    expect(await act(later, "undo")).toMatchObject({ state: "undone" });
    expect(stateOf("node003")).not.toContain("DRAIN");
    later.save(running);
    expect((await later.actions.recover(running)).actions[0]).toMatchObject({
      state: "failed",
      outcome: expect.stringMatching(/^it was not done/),
    });
  });

  it("leaves a node that somebody else drained as it is, and names what Slurm does not know", async () => {
    execFileSync(scontrol, ["update", "nodename=node001", "state=drain", "reason=a fan"], { env });
    const service = open();
    const on = (machine: string) =>
      testIncident({ verdict: testVerdict({}, { machine }), machines: [machine] });
    await service.confirm(on("node001"));
    const other = await act(service, "approve");
    expect(other.outcome).toMatch(/^node001 was drained before, for another reason/);
    expect(other).not.toHaveProperty("canUndo");
    await service.confirm(on("node099"));
    expect((await act(service, "approve")).outcome).toMatch(/^nothing was changed: .*node099/);
  });

  it("says that there is no such job to requeue", async () => {
    const service = open();
    const verdict = testVerdict({
      actions: [{ do: "restart-job", target: "llama", why: "the others only wait" }],
    });
    await service.confirm(testIncident({ verdict }));
    expect((await act(service, "approve", "restart-job")).outcome).toBe(
      "nothing was changed: Slurm has no running job llama",
    );
    const id = "424242.r1.hang.i1";
    const incident = await service.confirm(testIncident({ id, job: "424242", verdict }));
    const action = incident.actions.find((one) => one.do === "restart-job")!;
    const after = await service.actions.act(incident, action.id, "approve", "alice", false);
    expect(after.actions.find((one) => one.do === "restart-job")).toMatchObject({
      state: "failed",
      outcome: expect.stringMatching(/Invalid job id/),
    });
  });
});
