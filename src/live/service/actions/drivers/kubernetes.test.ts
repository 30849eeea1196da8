import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openTestService,
  type TestService,
} from "../../../../../test/support/live/action-service.ts";
import { testIncident, testVerdict } from "../../../../../test/support/live/incident.ts";
import {
  type KubernetesStub,
  startKubernetesStub,
} from "../../../../../test/support/live/kubernetes-stub.ts";
import { until } from "../../../../../test/support/until.ts";
import { TEST_CERTIFICATE } from "../../../../../test/support/live/tls.ts";
import type { Incident, IncidentAction } from "../../../../model/incident.ts";
import type { ActionsConfig } from "../types.ts";
import type { KubernetesConfig } from "./kubernetes.ts";

const NODE = "/api/v1/nodes/node003";
const PODS = "/api/v1/namespaces/ml/pods";
const LABEL = "jobset.sigs.k8s.io/jobset-name";
const TAINT = { key: "example.org/faulty", effect: "NoSchedule" } as const;

let folder: string;
let stub: KubernetesStub;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "faultline-kubernetes-"));
  stub = await startKubernetesStub();
  stub.add(NODE, { spec: { taints: [{ key: "nvidia.com/gpu", effect: "NoSchedule" }] } });
  writeFileSync(join(folder, "token"), stub.token);
  writeFileSync(join(folder, "ca.crt"), TEST_CERTIFICATE);
});
afterEach(async () => {
  await stub.close();
  rmSync(folder, { recursive: true, force: true });
});

function kubernetes(change: Partial<KubernetesConfig> = {}): KubernetesConfig {
  return {
    do: ["cordon-node"],
    access: {
      server: stub.url,
      token: { file: join(folder, "token") },
      ca: join(folder, "ca.crt"),
    },
    taint: null,
    pods: null,
    workload: null,
    timeoutSeconds: 5,
    ...change,
  };
}

function open(
  change: Partial<KubernetesConfig> = {},
  actions: Partial<ActionsConfig> = {},
): TestService {
  const drivers = { kubernetes: kubernetes(change) };
  return openTestService(folder, {
    dryRun: false,
    approval: "required",
    hooks: [],
    drivers,
    ...actions,
  });
}

const actionOf = (incident: Incident, word = "cordon-node"): IncidentAction =>
  incident.actions.find((one) => one.do === word)!;

async function act(
  service: TestService,
  verb: "approve" | "undo" = "approve",
  word = "cordon-node",
  dryRun = false,
): Promise<IncidentAction> {
  const incident = service.incident();
  const { id } = actionOf(incident, word);
  return actionOf(await service.actions.act(incident, id, verb, "alice", dryRun), word);
}

const writes = (): string[] => stub.requests.filter((line) => !line.startsWith("GET"));

describe("cordoning a node", () => {
  it("marks it, adds the taint to those that are there, and undoes just that", async () => {
    const service = open({ taint: TAINT });
    await service.confirm();
    const dry = await act(service, "approve", "cordon-node", true);
    expect(dry.would).toBe(
      `cordon node node003 and taint it example.org/faulty:NoSchedule (PATCH ${NODE})`,
    );
    expect(stub.requests).toEqual([]);
    expect(await act(service)).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: "node003 is cordoned and tainted example.org/faulty:NoSchedule",
    });
    expect(stub.object(NODE)).toMatchObject({
      spec: {
        unschedulable: true,
        taints: [{ key: "nvidia.com/gpu", effect: "NoSchedule" }, TAINT],
      },
      metadata: { annotations: { "faultline/action": expect.stringContaining("llama.r1.hang") } },
    });
    const undo = await act(service, "undo", "cordon-node", true);
    expect(undo).toMatchObject({
      outcome: "node003 is cordoned and tainted example.org/faulty:NoSchedule",
      would: expect.stringMatching(/^uncordon node node003 and remove the taint/) as string,
    });
    expect(service.incident().actions[0]!.state).toBe("done");
    expect(await act(service, "undo")).toMatchObject({
      state: "undone",
      outcome: "node003 takes new pods again",
    });
    expect(service.incident().actions[0]).not.toHaveProperty("canUndo");
    const { spec, metadata } = stub.object(NODE);
    expect(spec).toEqual({ taints: [{ key: "nvidia.com/gpu", effect: "NoSchedule" }] });
    expect(metadata.annotations).toEqual({});
    expect(service.audit().map(({ who, what }) => `${who} ${what}`)).toEqual([
      "service propose",
      "alice dry-run",
      "alice approve",
      "alice run",
      "alice outcome",
      "alice dry-run",
      "alice undo",
      "alice outcome",
    ]);
    // What was undone may be done again, by a person.
    expect(await act(service)).toMatchObject({ state: "done" });
    expect(stub.object(NODE).spec["unschedulable"]).toBe(true);
  });

  it("changes nothing where somebody else has cordoned it, and leaves that as it is", async () => {
    stub.object(NODE).spec["unschedulable"] = true;
    const service = open();
    await service.confirm();
    const action = await act(service);
    expect(action).toMatchObject({
      state: "done",
      outcome: "node003 was cordoned before by somebody else: nothing was changed",
    });
    expect(action).not.toHaveProperty("canUndo");
    expect(writes()).toEqual([]);
    await expect(act(service, "undo")).rejects.toThrow("nothing of it that can be undone");
  });

  it("is not undone where somebody else has taken it over meanwhile", async () => {
    const service = open();
    await service.confirm();
    await act(service);
    stub.object(NODE).metadata.annotations = {};
    expect(await act(service, "undo")).toMatchObject({
      state: "undone",
      outcome: "node003 is no longer cordoned by this action: nothing was changed",
    });
    expect(stub.object(NODE).spec["unschedulable"]).toBe(true);
  });

  it("tries once more where somebody else writes at the same time, and not for ever", async () => {
    const service = open();
    await service.confirm();
    let conflicts = 1;
    stub.before = (line) => {
      if (line.startsWith("PATCH") && conflicts-- > 0)
        stub.object(NODE).metadata.resourceVersion += "1";
    };
    expect(await act(service)).toMatchObject({ state: "done" });
    expect(stub.requests).toEqual([`GET ${NODE}`, `PATCH ${NODE}`, `GET ${NODE}`, `PATCH ${NODE}`]);
    conflicts = 9;
    expect(await act(service, "undo")).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: expect.stringMatching(/^it could not be undone: .*same time \(409\)/),
    });
  });

  it.each([
    ["get nodes", /may not get nodes \(403\): nodes "node003" is forbidden/],
    ["patch nodes", /may not patch nodes \(403\).*Helm chart grants it/],
  ])("says so without the right to %s, and can be approved again with it", async (right, words) => {
    stub.rights.delete(right);
    const service = open();
    await service.confirm();
    const action = await act(service);
    expect(action).toMatchObject({ state: "failed", outcome: expect.stringMatching(words) });
    expect(action.outcome).toMatch(/^nothing was changed: /);
    expect(action).not.toHaveProperty("canUndo");
    stub.rights.add(right);
    expect(await act(service)).toMatchObject({ state: "done" });
  });

  it("reads the token again for each request, and says where it is not accepted", async () => {
    writeFileSync(join(folder, "token"), "of yesterday");
    const service = open();
    await service.confirm();
    expect((await act(service)).outcome).toMatch(/does not accept .* token \(401\)/);
    writeFileSync(join(folder, "token"), `${stub.token}\n`);
    expect(await act(service)).toMatchObject({ state: "done" });
    rmSync(join(folder, "token"));
    expect((await act(service, "undo")).outcome).toMatch(/cannot be asked: ENOENT/);
  });

  it.each([
    [422, /answered 422: nodes/],
    [500, /answered 500/],
    [429, /not allow it now \(429\)/],
  ])("says what the API server refuses with %i", async (status, words) => {
    stub.before = (line) =>
      line.startsWith("PATCH") ? { status, body: { message: "nodes: no" } } : undefined;
    const service = open();
    await service.confirm();
    expect(await act(service)).toMatchObject({
      state: "failed",
      outcome: expect.stringMatching(words),
    });
  });

  it("says where the cluster has no such node, and where nobody answers or the certificate is another's", async () => {
    const other = testIncident({ verdict: testVerdict({}, { machine: "node099" }) });
    const service = open();
    await service.confirm(other);
    expect((await act(service)).outcome).toBe(
      "nothing was changed: the cluster has no node node099",
    );
    const strange = open({ access: { ...kubernetes().access, ca: null } });
    await strange.confirm();
    expect((await act(strange)).outcome).toMatch(
      /cannot be reached: (SELF_SIGNED|DEPTH_ZERO|UNABLE)/,
    );
    const { url } = stub;
    await stub.close();
    const gone = open();
    await gone.confirm();
    expect((await act(gone)).outcome).toBe(
      `nothing was changed: the API server ${new URL(url).host} cannot be reached: ECONNREFUSED`,
    );
    stub = await startKubernetesStub();
  });

  it("reads what became of it where the answer is lost", async () => {
    const service = open();
    await service.confirm();
    stub.lose = (line) => line.startsWith("PATCH");
    expect(await act(service)).toMatchObject({ state: "done", outcome: "node003 is cordoned" });
    stub.lose = () => true;
    const action = await act(service, "undo");
    expect(action).toMatchObject({ state: "done", canUndo: true });
    stub.lose = null;
    expect(await act(service, "undo")).toMatchObject({ state: "undone" });
  });
});

describe("replacing a machine", () => {
  const config = {
    do: ["replace-machine"],
    pods: { namespace: "ml", selector: `${LABEL}={job}` },
  };
  const pod = (name: string, job: string, node = "node003", status = {}): void =>
    void stub.add(`${PODS}/${name}`, {
      labels: { [LABEL]: job },
      spec: { nodeName: node },
      status: { phase: "Running", ...status },
    });
  beforeEach(() => {
    pod("llama-0", "llama");
    pod("llama-1", "llama");
    pod("llama-2", "llama", "node004");
    pod("moe-0", "moe");
    pod("llama-old", "llama", "node003", { phase: "Failed" });
  });
  const replace = (service: TestService, verb: "approve" | "undo" = "approve") =>
    act(service, verb, "replace-machine");

  it("cordons it, then evicts the job's own pods, and names the spare", async () => {
    const service = open(config, { spares: ["spare-01"] });
    const incident = await service.confirm();
    expect(actionOf(incident, "replace-machine").why).toMatch(/; replace node003 by spare-01$/);
    const dry = await act(service, "approve", "replace-machine", true);
    expect(dry.would).toMatch(/^replace node003 by spare-01: cordon node node003 .*evict/);
    expect(await replace(service)).toMatchObject({
      state: "done",
      outcome: "node003 is cordoned; evicted llama-0, llama-1",
    });
    expect(stub.pods()).toEqual(["llama-2", "moe-0", "llama-old"]);
    expect(await replace(service, "undo")).toMatchObject({ state: "undone" });
    expect(stub.object(NODE).spec).not.toHaveProperty("unschedulable");
  });

  it("is half done where a disruption budget protects a pod, says so, and goes on when it is approved again", async () => {
    stub.protectedPods.add("llama-1");
    const service = open(config);
    await service.confirm();
    const half = await replace(service);
    expect(half).toMatchObject({ state: "failed", canUndo: true });
    expect(half.outcome).toBe(
      "half done: node003 is cordoned; 1 of 2 pods were evicted: a PodDisruptionBudget protects llama-1 now: the API server does not allow it now (429): Cannot evict pod as it would violate the pod's disruption budget.; approve it again later",
    );
    stub.protectedPods.clear();
    expect(await replace(service)).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: "node003 was cordoned by this action already; evicted llama-1",
    });
  });

  it("does not evict the successor of a pod that ended meanwhile", async () => {
    const service = open(config);
    await service.confirm();
    stub.before = (line) => {
      if (line === `POST ${PODS}/llama-0/eviction`) pod("llama-0", "llama", "node005");
    };
    expect(await replace(service)).toMatchObject({ state: "done" });
    expect(stub.pods()).toEqual(["llama-0", "llama-2", "moe-0", "llama-old"]);
  });

  it("is half done without the right to evict, and can be undone then", async () => {
    stub.rights.delete("create pods/eviction");
    const service = open(config);
    await service.confirm();
    expect((await replace(service)).outcome).toMatch(
      /^half done: node003 is cordoned; no pod was evicted: the service account may not create pods\/eviction/,
    );
    expect(await replace(service, "undo")).toMatchObject({ state: "undone" });
  });
});

describe("restarting a job", () => {
  const KINDS = [
    ["Job", "/apis/batch/v1/namespaces/ml/jobs/llama", "job-name", ["spec", "suspend"]],
    [
      "JobSet",
      "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ml/jobsets/llama",
      LABEL,
      ["spec", "suspend"],
    ],
    [
      "PyTorchJob",
      "/apis/kubeflow.org/v1/namespaces/ml/pytorchjobs/llama",
      "training.kubeflow.org/job-name",
      ["spec", "runPolicy", "suspend"],
    ],
  ] as const;
  const verdict = testVerdict({
    actions: [{ do: "restart-job", target: "llama", why: "the others only wait" }],
  });
  const opened = async (kind: "Job" | "JobSet" | "PyTorchJob" | "VolcanoJob") => {
    const workload = { kind, namespace: "ml", name: "{job}" };
    const service = open({ do: ["restart-job"], workload });
    await service.confirm(testIncident({ verdict }));
    return service;
  };
  const restart = (service: TestService) => act(service, "approve", "restart-job");

  it.each(KINDS)(
    "suspends a %s until its pods are gone, then resumes it",
    async (kind, path, label, at) => {
      stub.add(path, { spec: {} });
      stub.add(`${PODS}/llama-0`, { labels: { [label]: "llama" } });
      const service = await opened(kind);
      const action = await restart(service);
      expect(action).toMatchObject({ state: "done", outcome: `${kind} ml/llama was restarted` });
      expect(action).not.toHaveProperty("canUndo");
      expect(writes()).toEqual([`PATCH ${path}`, `PATCH ${path}`]);
      expect(stub.pods()).toEqual([expect.stringMatching(/^llama-new-/)]);
      expect(
        at.reduce<unknown>(
          (value, key) => (value as Record<string, unknown>)[key],
          stub.object(path),
        ),
      ).toBe(false);
    },
  );

  const [, PATH] = KINDS[1];

  it("leaves alone what somebody else has suspended, what Kueue queues, what has ended and what is not there", async () => {
    const service = await opened("JobSet");
    expect((await restart(service)).outcome).toBe(
      "nothing was changed: there is no JobSet ml/llama",
    );
    stub.add(PATH, { spec: { suspend: true } });
    expect((await restart(service)).outcome).toMatch(/was suspended by somebody else$/);
    stub.add(PATH, { labels: { "kueue.x-k8s.io/queue-name": "q" } });
    expect((await restart(service)).outcome).toMatch(/Kueue decides when/);
    stub.add(PATH, { status: { conditions: [{ type: "Completed", status: "True" }] } });
    expect((await restart(service)).outcome).toMatch(/has ended$/);
    expect(writes()).toEqual([]);
  });

  it("that could not be resumed is half done, and is only resumed when it is approved again", async () => {
    stub.add(PATH, { spec: {} });
    const service = await opened("JobSet");
    let patches = 0;
    stub.before = (line) =>
      line.startsWith("PATCH") && patches++ > 0 ? { status: 503 } : undefined;
    const half = await restart(service);
    expect(half.state).toBe("failed");
    expect(half.outcome).toMatch(
      /^half done: JobSet ml\/llama is suspended and could not be resumed/,
    );
    expect(stub.object(PATH).spec["suspend"]).toBe(true);
    stub.before = null;
    stub.requests.length = 0;
    expect(await restart(service)).toMatchObject({ state: "done" });
    expect(writes()).toEqual([`PATCH ${PATH}`]);
    expect(stub.object(PATH).spec["suspend"]).toBe(false);
  });

  it("asks Volcano by a Command, once", async () => {
    const path = "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs/llama";
    const { metadata } = stub.add(path, { status: { retryCount: 2 } });
    const service = await opened("VolcanoJob");
    expect(await restart(service)).toMatchObject({
      state: "done",
      outcome: "Volcano took the command to restart ml/llama",
    });
    const commands = "/apis/bus.volcano.sh/v1alpha1/namespaces/ml/commands";
    expect(writes()).toEqual([`PATCH ${path}`, `POST ${commands}`]);
    expect(stub.object(path).metadata.annotations!["faultline/restart"]).toMatch(/ 2$/);
    expect(metadata.uid).toBeTruthy();
  });
});

describe("after kill -9 in the middle", () => {
  it.each([
    ["before the node was changed", false, "failed", /^it was not done: node003 is not cordoned/],
    ["after the node was changed", true, "done", /^node003 is cordoned \(the service stopped/],
  ] as const)(
    "%s, a killed process' action is known",
    async (_when, isCarriedOut, state, words) => {
      // The request that changes the node gets no answer before the process is killed.
      let reached = (): void => undefined;
      const isReached = new Promise<void>((resolve) => (reached = resolve));
      stub.hold = async (line) => {
        if (!line.startsWith("PATCH")) return true;
        reached();
        await killed;
        return isCarriedOut;
      };
      const config = {
        dryRun: false,
        approval: "automatic",
        hooks: [],
        drivers: { kubernetes: kubernetes() },
      };
      const source = fileURLToPath(
        new URL("../../../../../test/support/live/action-service.ts", import.meta.url),
      );
      const words_ = ["--import", "tsx", source, folder, JSON.stringify(config)];
      const child = spawn(process.execPath, words_, { stdio: "inherit" });
      const killed = once(child, "exit");
      try {
        await Promise.race([isReached, killed]);
      } finally {
        child.kill("SIGKILL");
      }
      await killed;
      stub.hold = null;
      await until(() => stub.requests.length >= 2, "the end of the request");
      const service = open({}, { approval: "automatic" });
      const left = service.incident();
      expect(actionOf(left).state).toBe("running");
      const after = await service.actions.recover(left);
      expect(actionOf(after)).toMatchObject({ state, outcome: expect.stringMatching(words) });
      // Once or not at all: nothing runs by itself again.
      stub.requests.length = 0;
      await service.actions.runAutomatic(after);
      expect(writes()).toEqual([]);
      expect(stub.object(NODE).spec["unschedulable"]).toBe(isCarriedOut ? true : undefined);
      expect(service.audit().map(({ what }) => what)).toEqual([
        "propose",
        "approve",
        "run",
        "recover",
      ]);
    },
  );

  /** The record as the killed service left it, in a new one. */
  async function restarted(
    change: Partial<KubernetesConfig>,
    state: "running" | "undoing",
    word = "cordon-node",
  ): Promise<IncidentAction> {
    const service = open(change);
    const incident = service.incident();
    const left = service.save({
      ...incident,
      actions: incident.actions.map((one) => (one.do === word ? { ...one, state } : one)),
    });
    const after = actionOf(await service.actions.recover(left), word);
    expect(service.audit().at(-1)).toMatchObject({ who: "service", what: "recover" });
    return after;
  }

  it("the node says whether it was cordoned", async () => {
    const service = open();
    await service.confirm();
    expect(await restarted({}, "running")).toMatchObject({
      state: "failed",
      outcome:
        "it was not done: node003 is not cordoned by this action (the service stopped while it was running)",
    });
    await act(service);
    expect(await restarted({}, "running")).toMatchObject({
      state: "done",
      canUndo: true,
      outcome: "node003 is cordoned (the service stopped while it was running)",
    });
    expect(await restarted({}, "undoing")).toMatchObject({ state: "done", canUndo: true });
    stub.object(NODE).metadata.annotations = {};
    expect(await restarted({}, "undoing")).toMatchObject({ state: "undone" });
    stub.rights.clear();
    const unknown = await restarted({}, "running");
    expect(unknown.state).toBe("failed");
    expect(unknown.outcome).toMatch(/^outcome unknown: .*may not get nodes/);
  });

  it("a job that was left suspended is resumed", async () => {
    const path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ml/jobsets/llama";
    const workload = { kind: "JobSet", namespace: "ml", name: "{job}" } as const;
    const change = { do: ["restart-job"], workload };
    const verdict = testVerdict({
      actions: [{ do: "restart-job", target: "llama", why: "the others only wait" }],
    });
    const service = open(change);
    const incident = await service.confirm(testIncident({ verdict }));
    stub.add(path, { spec: {} });
    expect(await restarted(change, "running", "restart-job")).toMatchObject({ state: "failed" });
    stub.add(path, { spec: { suspend: true } }).metadata.annotations = {
      "faultline/restart": `${incident.id}/${actionOf(incident, "restart-job").id} suspended`,
    };
    expect(await restarted(change, "running", "restart-job")).toMatchObject({
      state: "done",
      outcome: "JobSet ml/llama was restarted (the service stopped while it was running)",
    });
    expect(stub.object(path).spec["suspend"]).toBe(false);
  });
});
