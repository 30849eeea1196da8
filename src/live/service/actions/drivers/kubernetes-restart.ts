/**
 * Restarts a job's workload in the way that each kind documents. Job, JobSet and PyTorchJob have a field `suspend`:
 * setting it deletes the running pods, clearing it starts the workload again. Volcano takes a Command with the action
 * RestartJob. Between the two steps the job stands still: whatever fails, the second is tried, and after a restart of this
 * service made good.
 */
import { createHash } from "node:crypto";
import {
  type DriverEnv,
  done,
  failed,
  type Outcome,
  type Plan,
  type Task,
  unknown,
} from "./driver.ts";
import { type ApiCall, NoAnswer, refusalWords } from "./kubernetes-api.ts";

export const WORKLOAD_KINDS = ["Job", "JobSet", "PyTorchJob", "VolcanoJob"] as const;

export interface Workload {
  readonly kind: (typeof WORKLOAD_KINDS)[number];
  readonly namespace: string;
  /** {job} is the job's name. */
  readonly name: string;
}

interface Kind {
  /** Group and version, and the plural. */
  readonly api: string;
  readonly plural: string;
  /** Where `suspend` is. */
  readonly suspend: readonly string[];
  /** The label of its pods that holds its name. */
  readonly label: string;
}

const KINDS: Readonly<Record<Exclude<Workload["kind"], "VolcanoJob">, Kind>> = {
  Job: {
    api: "apis/batch/v1",
    plural: "jobs",
    suspend: ["spec", "suspend"],
    label: "job-name",
  },
  JobSet: {
    api: "apis/jobset.x-k8s.io/v1alpha2",
    plural: "jobsets",
    suspend: ["spec", "suspend"],
    label: "jobset.sigs.k8s.io/jobset-name",
  },
  PyTorchJob: {
    api: "apis/kubeflow.org/v1",
    plural: "pytorchjobs",
    suspend: ["spec", "runPolicy", "suspend"],
    label: "training.kubeflow.org/job-name",
  },
};

const MARK = "faultline/restart";
const KUEUE = "kueue.x-k8s.io/queue-name";
const POLL_MS = 1000;
const RESUME_ATTEMPTS = 5;

export function restartPlan(
  task: Task,
  workload: Workload,
  call: ApiCall,
  timeoutMs: number,
): Plan {
  const name = workload.name.replaceAll("{job}", task.job);
  const { kind, namespace } = workload;
  if (kind === "VolcanoJob") return volcanoPlan(task, namespace, name, call);
  const shape = KINDS[kind];
  const path = `/${shape.api}/namespaces/${namespace}/${shape.plural}/${encodeURIComponent(name)}`;
  const what = `${kind} ${namespace}/${name}`;
  const may = shape.plural;

  const write = (step: "suspended" | "resumed", version?: string) =>
    call("PATCH", path, {
      metadata: {
        ...(version === undefined ? {} : { resourceVersion: version }),
        annotations: { [MARK]: `${task.id} ${step}` },
      },
      ...nested(shape.suspend, step === "suspended"),
    });

  /** Tried again: while it fails the job stands still. */
  const resume = async (env: DriverEnv): Promise<Outcome> => {
    let why = "";
    for (let attempt = 0; attempt < RESUME_ATTEMPTS; attempt++) {
      if (attempt > 0) await env.pause(POLL_MS);
      try {
        const answer = await write("resumed");
        if (answer.status === 200) return done(`${what} was restarted`);
        why = refusalWords(answer, `patch ${may}`);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        why = error.message;
      }
    }
    return failed(
      `half done: ${what} is suspended and could not be resumed: ${why}; approve it again, or clear its suspend by hand`,
    );
  };

  const go = async (env: DriverEnv): Promise<Outcome> => {
    for (let attempt = 0; ; attempt++) {
      const seen = await read(path, what, may, shape.suspend, call);
      if ("how" in seen) return seen;
      if (seen.mark === `${task.id} resumed`)
        return done(`${what} was restarted by this action already`);
      if (seen.mark === `${task.id} suspended`) return await resume(env);
      if (seen.isFinished) return failed(`nothing was changed: ${what} has ended`);
      if (seen.isSuspended)
        return failed(`nothing was changed: ${what} was suspended by somebody else`);
      if (seen.isQueued)
        return failed(
          `nothing was changed: Kueue decides when ${what} is suspended; restart it there`,
        );
      try {
        const answer = await write("suspended", seen.version);
        if (answer.status === 409 && attempt === 0) continue;
        if (answer.status !== 200)
          return failed(`nothing was changed: ${refusalWords(answer, `patch ${may}`)}`);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (!error.isSent) return failed(`nothing was changed: ${error.message}`);
        // It may be suspended now: read, and go on from there.
        if (attempt === 0) continue;
        return unknown(`${error.message}; ${what} may be suspended`);
      }
      const isGone = await podsGone(namespace, `${shape.label}=${name}`, call, timeoutMs, env);
      const outcome = await resume(env);
      return isGone || outcome.how !== "done"
        ? outcome
        : done(`${outcome.says}, but its old pods had not ended after ${timeoutMs / 1000} s`);
    }
  };

  return {
    words: `restart ${what}: suspend it, wait for the end of its pods, resume it (PATCH ${path})`,
    run: go,
    async settle(env) {
      const seen = await read(path, what, may, shape.suspend, call);
      if ("how" in seen) return unknown(seen.says);
      if (seen.mark === `${task.id} suspended`) return await resume(env);
      return seen.mark === `${task.id} resumed`
        ? done(`${what} was restarted`)
        : failed(`it was not done: ${what} was not restarted by this action`);
    },
  };
}

interface SeenWorkload {
  readonly version: string;
  readonly uid: string;
  readonly mark: string | undefined;
  readonly isSuspended: boolean;
  readonly isFinished: boolean;
  readonly isQueued: boolean;
  /** Of a Volcano job. */
  readonly retries: number;
}

async function read(
  path: string,
  what: string,
  plural: string,
  suspend: readonly string[],
  call: ApiCall,
): Promise<SeenWorkload | Outcome> {
  try {
    const answer = await call("GET", path);
    if (answer.status === 404) return failed(`nothing was changed: there is no ${what}`);
    if (answer.status !== 200)
      return failed(`nothing was changed: ${refusalWords(answer, `get ${plural}`)}`);
    const { metadata, status } = answer.body as {
      metadata?: {
        resourceVersion?: string;
        uid?: string;
        annotations?: Record<string, string>;
        labels?: Record<string, string>;
      };
      status?: { conditions?: { type?: string; status?: string }[]; retryCount?: number };
    };
    const ended = ["Complete", "Completed", "Failed", "Succeeded"];
    return {
      version: metadata?.resourceVersion ?? "",
      uid: metadata?.uid ?? "",
      mark: metadata?.annotations?.[MARK],
      isSuspended: suspend.reduce<unknown>(within, answer.body) === true,
      isFinished: (status?.conditions ?? []).some(
        (one) => ended.includes(one.type ?? "") && one.status === "True",
      ),
      isQueued: metadata?.labels?.[KUEUE] !== undefined,
      retries: status?.retryCount ?? 0,
    };
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return failed(`nothing was changed: ${error.message}`);
  }
}

/** false: some were still there when the time was over. */
async function podsGone(
  namespace: string,
  labelSelector: string,
  call: ApiCall,
  timeoutMs: number,
  env: DriverEnv,
): Promise<boolean> {
  const path = `/api/v1/namespaces/${namespace}/pods?${new URLSearchParams({ labelSelector })}`;
  for (let waitedMs = 0; waitedMs < timeoutMs; waitedMs += POLL_MS) {
    try {
      const { status, body } = await call("GET", path);
      const { items = [] } = body as { items?: { status?: { phase?: string } }[] };
      const isOver = ({ status: of }: (typeof items)[number]): boolean =>
        of?.phase === "Succeeded" || of?.phase === "Failed";
      if (status === 200 && items.every(isOver)) return true;
      // It may not list pods: the workload is resumed all the same.
      if (status === 401 || status === 403) return false;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    await env.pause(POLL_MS);
  }
  return false;
}

/** A mark with the number of retries before, then the command: a number that has grown says that it was carried out. */
function volcanoPlan(task: Task, namespace: string, name: string, call: ApiCall): Plan {
  const path = `/apis/batch.volcano.sh/v1alpha1/namespaces/${namespace}/jobs/${encodeURIComponent(name)}`;
  const commands = `/apis/bus.volcano.sh/v1alpha1/namespaces/${namespace}/commands`;
  const what = `Volcano job ${namespace}/${name}`;
  const plural = "jobs.batch.volcano.sh";
  return {
    words: `restart ${what}: a Command with the action RestartJob (POST ${commands})`,
    async run() {
      const seen = await read(path, what, plural, [], call);
      if ("how" in seen) return seen;
      const command = `faultline-${createHash("sha256").update(task.id).digest("hex").slice(0, 16)}`;
      const target = {
        apiVersion: "batch.volcano.sh/v1alpha1",
        kind: "Job",
        name,
        uid: seen.uid,
        controller: true,
      };
      try {
        const marked = await call("PATCH", path, {
          metadata: { annotations: { [MARK]: `${task.id} ${seen.retries}` } },
        });
        if (marked.status !== 200)
          return failed(`nothing was changed: ${refusalWords(marked, `patch ${plural}`)}`);
        const answer = await call("POST", commands, {
          apiVersion: "bus.volcano.sh/v1alpha1",
          kind: "Command",
          metadata: { name: command, namespace, ownerReferences: [target] },
          action: "RestartJob",
          target,
          reason: "Faultline",
          message: task.reason,
        });
        if (answer.status === 409) return done(`${what}: Volcano has this command already`);
        if (answer.status < 200 || answer.status >= 300)
          return failed(
            `nothing was changed: ${refusalWords(answer, "create commands.bus.volcano.sh")}`,
          );
        return done(`Volcano took the command to restart ${namespace}/${name}`);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        return (error.isSent ? unknown : failed)(error.message);
      }
    },
    async settle() {
      const seen = await read(path, what, plural, [], call);
      if ("how" in seen) return unknown(seen.says);
      const [by, retries] = (seen.mark ?? "").split(" ");
      if (by !== task.id)
        return failed(`it was not done: ${what} was not restarted by this action`);
      return seen.retries > Number(retries)
        ? done(`${what} was restarted`)
        : unknown(`${what} is marked for a restart, and has not restarted since`);
    },
  };
}

function nested(path: readonly string[], value: unknown): Record<string, unknown> {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<
    string,
    unknown
  >;
}

function within(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[key]
    : undefined;
}
