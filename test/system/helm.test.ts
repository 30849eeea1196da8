/** The Helm chart, rendered by the engine that Helm uses, against the published schemas. Slurm's scripts. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { ROOT } from "../support/cli.ts";
import { programPath, unlessThere } from "../support/lacking.ts";
import { until } from "../support/until.ts";

const folder = mkdtempSync(join(tmpdir(), "faultline-helm-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const CHART = `${ROOT}deploy/helm/faultline`;
const GOPATH = "/usr/share/gocode";
const hasGo =
  programPath("go") !== null && existsSync(`${GOPATH}/src/github.com/Masterminds/sprig`);
const noGo = unlessThere(hasGo, "Go with sprig", "golang-go golang-github-masterminds-sprig-dev");

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
}

interface PodSpec {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly securityContext: object;
    readonly volumeMounts: readonly { readonly name: string }[];
  }[];
  readonly volumes: readonly { readonly name: string }[];
}

function manifests(text: string): Manifest[] {
  // YAML 1.1, as Kubernetes reads it: 0440 is octal.
  return parseAllDocuments(text, { version: "1.1" })
    .map((document) => {
      if (document.errors[0]) throw document.errors[0];
      return document.toJS() as Manifest | null;
    })
    .filter((one) => one !== null);
}

async function validate(manifest: Manifest): Promise<void> {
  const models = (await import(`kubernetes-models/${manifest.apiVersion}`)) as Readonly<
    Record<string, new (manifest: Manifest) => { validate(): void }>
  >;
  new models[manifest.kind]!(manifest).validate();
}

function render(values: object): Manifest[] {
  const file = join(folder, "values.json");
  writeFileSync(file, JSON.stringify(values));
  const env = { ...process.env, GO111MODULE: "off", GOPATH, GOCACHE: join(folder, "cache") };
  const words = ["run", `${ROOT}test/system/helm-render/main.go`, CHART, file];
  return manifests(execFileSync("go", words, { env, encoding: "utf8" }));
}

/** Calls what exists, drops every right but those it needs, and mounts only volumes that it has. */
function checkWorkload({ kind, spec }: Manifest): void {
  const command = { Deployment: ["serve"], DaemonSet: ["agent", "run"] }[kind];
  if (!command) return;
  const { containers, volumes } = (spec as { template: { spec: PodSpec } }).template.spec;
  const { args, securityContext, volumeMounts } = containers[0]!;
  expect(args.slice(0, command.length)).toEqual(command);
  const help = execFileSync(`${ROOT}faultline`, [...command, "--help"], { encoding: "utf8" });
  for (const word of args)
    if (word.startsWith("--")) expect(help).toContain(` ${/^--[a-z-]+/.exec(word)![0]} `);
  expect(securityContext).toMatchObject({
    capabilities: { drop: ["ALL"] },
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
  });
  const names = volumes.map(({ name }) => name);
  expect(volumeMounts.filter(({ name }) => !names.includes(name))).toEqual([]);
}

describe("the training pod", () => {
  it("is valid", async () => {
    const all = manifests(readFileSync(`${ROOT}deploy/training-pod.yaml`, "utf8"));
    expect(all).toHaveLength(1);
    await validate(all[0]!);
  });

  it("would not be, with a field of another type", async () => {
    const [claim] = manifests(
      "apiVersion: v1\nkind: Service\nmetadata: { name: x }\nspec: { ports: 7 }",
    );
    await expect(validate(claim!)).rejects.toThrow();
  });
});

describe.skipIf(noGo !== "")(`the Helm chart${noGo}`, () => {
  it("renders valid manifests, with a configuration that serve takes", async () => {
    const all = render({});
    for (const one of all) await validate(one);
    for (const one of all) checkWorkload(one);
    expect(all.map(({ kind }) => kind).sort()).toEqual(
      ["ConfigMap", "DaemonSet", "Deployment", "NetworkPolicy", "NetworkPolicy"].concat([
        "PersistentVolumeClaim",
        "Service",
        "ServiceAccount",
        "ServiceAccount",
      ]),
    );
    const config = JSON.parse(
      all.find(({ kind }) => kind === "ConfigMap")!.data!["serve.json"]!,
    ) as object;
    expect(config).toMatchObject({
      port: 7077,
      allowedHosts: ["faultline.faultline.svc", expect.anything()],
    });
    const version = (JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as { version: string })
      .version;
    expect(JSON.stringify(all)).toContain(`registry.example.org/faultline:${version}`);
  });

  it("takes every value", async () => {
    const all = render({
      image: { repository: "r/f", tag: "9" },
      imagePullSecrets: [{ name: "pull" }],
      serve: {
        config: { alerts: { alertmanager: ["http://a:9093"] }, port: 8088 },
        allowedHosts: ["f.example.org"],
        storage: { className: "fast" },
        tolerations: [{ key: "x", operator: "Exists" }],
        nodeSelector: { a: "b" },
      },
      agent: { logs: ["/l/rank*.log"], logFolders: ["/l"], caConfigMap: "", server: "wss://s:1" },
      actions: { enabled: true, namespaces: ["ml"], workloads: ["JobSet", "VolcanoJob"] },
      collect: {
        namespaces: ["ml", "ml2"],
        subjects: [{ kind: "Group", name: "sre", apiGroup: "rbac.authorization.k8s.io" }],
      },
    });
    for (const one of all) await validate(one);
    const text = JSON.stringify(all);
    expect(text).toContain("--log=/l/rank*.log");
    expect(text).toContain("--server=wss://s:1");
    expect(text).not.toContain("--ca=");
    const roles = all
      .filter(({ kind }) => kind === "Role")
      .map(({ metadata }) => metadata.namespace);
    expect(roles).toEqual(["ml", "ml", "ml2"]);
    const ofActions = all.find(
      ({ kind, metadata }) => kind === "Role" && metadata.name.endsWith("-actions"),
    ) as unknown as { rules: { resources: string[]; verbs: string[] }[] };
    expect(
      ofActions.rules.map(({ resources, verbs }) => `${resources.join()}: ${verbs.join()}`),
    ).toEqual([
      "pods: list",
      "pods/eviction: create",
      "jobsets: get,patch",
      "jobs: get,patch",
      "commands: create",
    ]);
    expect(text).toContain('"automountServiceAccountToken":true');
    const config = all.find(({ kind }) => kind === "ConfigMap")!.data!["serve.json"]!;
    expect(JSON.parse(config)).toMatchObject({
      port: 8088,
      alerts: { alertmanager: ["http://a:9093"] },
    });
  });

  it("renders the service or the agents alone", () => {
    const agents = render({ serve: { enabled: false } }).map(({ kind }) => kind);
    expect(agents).toEqual(["ServiceAccount", "DaemonSet", "NetworkPolicy"]);
    expect(render({ agent: { enabled: false } }).map(({ kind }) => kind)).not.toContain(
      "DaemonSet",
    );
  });
});

describe("Slurm's scripts", () => {
  const probe = join(folder, "probe");
  mkdirSync(join(probe, "faultline_probe"), { recursive: true });
  writeFileSync(join(probe, "faultline_probe/libfaultline.so"), "");
  const task = (more: Readonly<Record<string, string>>): string[] => {
    const env = {
      PATH: process.env["PATH"],
      SLURM_JOB_ID: "77",
      FAULTLINE_PROBE_FOLDER: probe,
      ...more,
    };
    const words = [`${ROOT}deploy/slurm/task-prolog.sh`];
    return execFileSync("sh", words, { env, encoding: "utf8" }).split("\n").filter(Boolean);
  };

  it("TaskProlog switches the probe on, unless the job says no", () => {
    expect(task({ PYTHONPATH: "/own" })).toEqual([
      "export FAULTLINE_PROBE=1",
      "export FAULTLINE_JOB=77",
      `export PYTHONPATH=${probe}/site:${probe}:/own`,
      `export NCCL_PROFILER_PLUGIN=${probe}/faultline_probe/libfaultline.so`,
      "export TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/dev/shm/fr_pipe_77.",
    ]);
    expect(task({ FAULTLINE_PROBE: "0" })).toEqual([]);
    expect(task({ NCCL_PROFILER_PLUGIN: "theirs" }).join()).not.toContain("PROFILER_PLUGIN");
    expect(task({ FAULTLINE_PROBE_FOLDER: "/nothing" })).toEqual([]);
  });

  const noFlock = unlessThere(programPath("flock") !== null, "flock", "util-linux");
  it.skipIf(noFlock !== "")(
    `Prolog starts one agent, and never fails a job${noFlock}`,
    async () => {
      const program = join(folder, "faultline");
      const started = join(folder, "started");
      // It ends when the test has seen it.
      writeFileSync(
        program,
        `#!/bin/sh\necho "$* $FAULTLINE_AGENT_RUN_SERVER" >> ${started}\nwhile [ -e ${started} ]; do sleep 0.1; done\n`,
      );
      chmodSync(program, 0o755);
      writeFileSync(join(folder, "agent.env"), "FAULTLINE_AGENT_RUN_SERVER=wss://s:1\n");
      const env = { PATH: process.env["PATH"], FAULTLINE_PROGRAM: program, FAULTLINE_RUN: folder };
      const prolog = (more: Readonly<Record<string, string>>): number | null =>
        spawnSync("sh", [`${ROOT}deploy/slurm/prolog.sh`], { env: { ...env, ...more } }).status;
      const settings = { FAULTLINE_SETTINGS: join(folder, "agent.env") };
      expect(prolog({ FAULTLINE_SETTINGS: "/nothing" })).toBe(0);
      expect(existsSync(started)).toBe(false);
      expect(prolog(settings)).toBe(0);
      await until(() => existsSync(started));
      expect(prolog(settings)).toBe(0);
      // A second one that got no lock is gone before this lock can be asked for in turn.
      const lock = join(folder, "faultline-agent.lock");
      expect(spawnSync("flock", ["--nonblock", lock, "true"]).status).toBe(1);
      expect(readFileSync(started, "utf8")).toBe("agent run --quiet wss://s:1\n");
      rmSync(started);
    },
  );
});
