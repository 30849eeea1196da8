/**
 * Kubernetes, by its API: cordons and taints a node, evicts the job's pods from it, restarts the job's workload. Whatever
 * is changed gets a mark (an annotation) in the same request: a repeated action sees that it was done, undoing takes back
 * only what this action changed, and after kill -9 the mark says whether it was done.
 */
import { parseFields } from "../../../../base/json.ts";
import { count } from "../../../../base/text.ts";
import {
  type Outcome,
  type Plan,
  type Refused,
  type Task,
  done,
  failed,
  unknown,
} from "./driver.ts";
import { type ApiAccess, type ApiCall, apiCall, NoAnswer, refusalWords } from "./kubernetes-api.ts";
import { restartPlan, type Workload } from "./kubernetes-restart.ts";

export interface KubernetesConfig {
  readonly do: readonly string[];
  readonly access: ApiAccess;
  /** Put on the node beside the cordon; null for none. */
  readonly taint: Taint | null;
  /** Where the job's pods are, and which they are: "jobset.sigs.k8s.io/jobset-name={job}"; null where none is evicted. */
  readonly pods: { readonly namespace: string; readonly selector: string } | null;
  /** What restarts the job; null where nothing does. */
  readonly workload: Workload | null;
  readonly timeoutSeconds: number;
}

export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** One request; a plan has several. */
const REQUEST_MS = 10_000;
const MARK = "faultline/action";

export function kubernetesPlan(task: Task, config: KubernetesConfig): Plan | Refused {
  const timeoutMs = 1000 * config.timeoutSeconds;
  const call = apiCall(config.access, Math.min(REQUEST_MS, timeoutMs));
  const { machine } = task;
  switch (task.do) {
    case "restart-job":
      if (!config.workload) return { refused: "the configuration names no workload to restart" };
      return restartPlan(task, config.workload, call, timeoutMs);
    case "cordon-node":
    case "exclude-node":
      if (machine === null) return { refused: "the verdict names no machine" };
      return cordonPlan(task, machine, config.taint, call);
    case "replace-machine":
    case "restart-without":
      if (machine === null) return { refused: "the verdict names no machine" };
      if (!config.pods)
        return { refused: "the configuration does not say which pods are the job's" };
      return replacePlan(task, machine, config, config.pods, call);
    default:
      return { refused: `the driver of Kubernetes cannot do ${task.do}` };
  }
}

interface Mark {
  readonly by: string;
  readonly cordoned: boolean;
  readonly tainted: boolean;
}

interface SeenNode {
  readonly version: string;
  readonly isCordoned: boolean;
  readonly taints: readonly Partial<Taint>[];
  readonly mark: Mark | null;
}

type CordonPlan = Plan & Required<Pick<Plan, "undo" | "settle">>;

function cordonPlan({ id }: Task, machine: string, taint: Taint | null, call: ApiCall): CordonPlan {
  const path = `/api/v1/nodes/${encodeURIComponent(machine)}`;
  const tainting = taint === null ? "" : ` and taint it ${taintWords(taint)}`;
  const isOurTaint = (one: Partial<Taint>): boolean =>
    one.key === taint?.key && one.effect === taint?.effect;

  const cordon = (node: SeenNode): Change => {
    const { mark, isCordoned, taints, version } = node;
    if (mark?.by === id)
      return { outcome: done(`${machine} was cordoned by this action already`, true) };
    if (mark)
      return {
        outcome: done(
          `${machine} was cordoned by another action of Faultline: nothing was changed`,
        ),
      };
    const isTainted = taint === null || taints.some(isOurTaint);
    if (isCordoned && isTainted)
      return {
        outcome: done(`${machine} was cordoned before by somebody else: nothing was changed`),
      };
    const own: Mark = { by: id, cordoned: !isCordoned, tainted: taint !== null && !isTainted };
    return {
      patch: {
        metadata: { resourceVersion: version, annotations: { [MARK]: JSON.stringify(own) } },
        spec: {
          unschedulable: true,
          ...(own.tainted ? { taints: [...taints, taint] } : {}),
        },
      },
      after: done(
        `${machine} is cordoned${own.tainted ? ` and tainted ${taintWords(taint!)}` : ""}`,
        true,
      ),
    };
  };
  const uncordon = ({ mark, taints, version }: SeenNode): Change => {
    if (mark?.by !== id)
      return {
        outcome: done(`${machine} is no longer cordoned by this action: nothing was changed`),
      };
    return {
      patch: {
        metadata: { resourceVersion: version, annotations: { [MARK]: null } },
        spec: {
          ...(mark.cordoned ? { unschedulable: null } : {}),
          ...(mark.tainted ? { taints: taints.filter((one) => !isOurTaint(one)) } : {}),
        },
      },
      after: done(`${machine} takes new pods again`),
    };
  };
  const settle = async (): Promise<Outcome> => {
    const node = await readNode(machine, path, call);
    if ("how" in node) return unknown(node.says, true);
    return node.mark?.by === id
      ? done(`${machine} is cordoned`, true)
      : failed(`it was not done: ${machine} is not cordoned by this action`);
  };
  return {
    words: `cordon node ${machine}${tainting} (PATCH ${path})`,
    run: () => change(machine, path, call, cordon, settle),
    undo: {
      words: `uncordon node ${machine}${taint === null ? "" : ` and remove the taint ${taintWords(taint)}`} (PATCH ${path})`,
      run: () =>
        change(machine, path, call, uncordon, async () => {
          const seen = await settle();
          if (seen.how === "unknown") return seen;
          return seen.how === "done"
            ? failed(`it was not done: ${machine} is still cordoned`, true)
            : done(`${machine} takes new pods again`);
        }),
    },
    settle,
  };
}

type Change = { readonly outcome: Outcome } | { readonly patch: unknown; readonly after: Outcome };

/** Reads, then writes what it read a version of; once more where somebody else wrote meanwhile. */
async function change(
  machine: string,
  path: string,
  call: ApiCall,
  decide: (node: SeenNode) => Change,
  settle: () => Promise<Outcome>,
): Promise<Outcome> {
  for (let attempt = 0; ; attempt++) {
    const node = await readNode(machine, path, call);
    if ("how" in node) return node;
    const next = decide(node);
    if ("outcome" in next) return next.outcome;
    try {
      const answer = await call("PATCH", path, next.patch);
      if (answer.status === 200) return next.after;
      if (answer.status === 409 && attempt === 0) continue;
      return failed(`nothing was changed: ${refusalWords(answer, "patch nodes")}`);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return error.isSent ? await settle() : failed(`nothing was changed: ${error.message}`);
    }
  }
}

async function readNode(machine: string, path: string, call: ApiCall): Promise<SeenNode | Outcome> {
  try {
    const answer = await call("GET", path);
    if (answer.status === 404)
      return failed(`nothing was changed: the cluster has no node ${machine}`);
    if (answer.status !== 200)
      return failed(`nothing was changed: ${refusalWords(answer, "get nodes")}`);
    const { metadata, spec } = answer.body as {
      metadata?: { resourceVersion?: string; annotations?: Record<string, string> };
      spec?: { unschedulable?: boolean; taints?: Partial<Taint>[] };
    };
    return {
      version: metadata?.resourceVersion ?? "",
      isCordoned: spec?.unschedulable === true,
      taints: spec?.taints ?? [],
      mark: markOf(metadata?.annotations?.[MARK]),
    };
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return failed(`nothing was changed: ${error.message}`);
  }
}

function markOf(text: string | undefined): Mark | null {
  const { by, cordoned, tainted } = parseFields(text ?? "") ?? {};
  return typeof by === "string"
    ? { by, cordoned: cordoned === true, tainted: tainted === true }
    : null;
}

/** Cordoned first: an evicted pod must not come back to it. */
function replacePlan(
  task: Task,
  machine: string,
  { taint }: KubernetesConfig,
  pods: NonNullable<KubernetesConfig["pods"]>,
  call: ApiCall,
): Plan {
  const cordon = cordonPlan(task, machine, taint, call);
  const base = `/api/v1/namespaces/${encodeURIComponent(pods.namespace)}/pods`;
  const selector = pods.selector.replaceAll("{job}", task.job);
  const list = (): Promise<readonly PodRef[] | Outcome> => podsOn(base, selector, machine, call);
  return {
    words: `${cordon.words}; then evict the pods of ${selector} from it (POST ${base}/NAME/eviction)`,
    async run(env) {
      const first = await cordon.run(env);
      if (first.how !== "done") return first;
      const found = await list();
      if ("how" in found) return withCordon(found, first);
      return withCordon(await evictAll(base, found, pods.namespace, call), first);
    },
    undo: {
      ...cordon.undo,
      words: `${cordon.undo.words}; evicted pods stay where they are now`,
    },
    async settle(env) {
      const first = await cordon.settle(env);
      if (first.how !== "done") return first;
      const found = await list();
      if ("how" in found) return withCordon({ ...found, how: "unknown" }, first);
      if (found.length === 0) return done(`${first.says}, and no pod of the job is on it`, true);
      return withCordon(failed(`${count(found.length, "pod")} of the job still there`), first);
    },
  };
}

function withCordon(outcome: Outcome, { says, canUndo = false }: Outcome): Outcome {
  const isHalf = outcome.how !== "done";
  return { ...outcome, says: `${isHalf ? "half done: " : ""}${says}; ${outcome.says}`, canUndo };
}

interface PodRef {
  readonly name: string;
  readonly uid: string;
}

/** Those that run and are not about to end. */
async function podsOn(
  base: string,
  selector: string,
  machine: string,
  call: ApiCall,
): Promise<readonly PodRef[] | Outcome> {
  const query = new URLSearchParams({
    fieldSelector: `spec.nodeName=${machine}`,
    labelSelector: selector,
  });
  try {
    const answer = await call("GET", `${base}?${query}`);
    if (answer.status !== 200) return failed(refusalWords(answer, "list pods"));
    const { items = [] } = answer.body as {
      items?: {
        metadata: { name: string; uid: string; deletionTimestamp?: string };
        status?: { phase?: string };
      }[];
    };
    return items
      .filter(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined &&
          status?.phase !== "Succeeded" &&
          status?.phase !== "Failed",
      )
      .map(({ metadata: { name, uid } }) => ({ name, uid }));
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return failed(error.message);
  }
}

/** By the eviction API, which respects PodDisruptionBudgets. What was evicted before stays evicted. */
async function evictAll(
  base: string,
  pods: readonly PodRef[],
  namespace: string,
  call: ApiCall,
): Promise<Outcome> {
  let evicted = 0;
  for (const { name, uid } of pods) {
    const so =
      evicted === 0 ? "no pod was evicted" : `${evicted} of ${pods.length} pods were evicted`;
    try {
      const answer = await call("POST", `${base}/${encodeURIComponent(name)}/eviction`, {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name, namespace },
        // Not its successor of the same name.
        deleteOptions: { preconditions: { uid } },
      });
      // 404 and 409: that pod is gone.
      const isGone = answer.status === 404 || answer.status === 409;
      if (isGone || (answer.status >= 200 && answer.status < 300)) evicted++;
      else if (answer.status === 429)
        return failed(
          `${so}: a PodDisruptionBudget protects ${name} now: ${refusalWords(answer, "")}; approve it again later`,
        );
      else return failed(`${so}: ${refusalWords(answer, "create pods/eviction")}`);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return (error.isSent ? unknown : failed)(
        `${so}, and of ${name} nobody knows: ${error.message}`,
      );
    }
  }
  return done(
    pods.length === 0
      ? "the job has no pod there"
      : `evicted ${pods
          .map(({ name }) => name)
          .slice(0, 8)
          .join(", ")}${pods.length > 8 ? ` and ${pods.length - 8} more` : ""}`,
  );
}

function taintWords({ key, value, effect }: Taint): string {
  return `${key}${value === undefined ? "" : `=${value}`}:${effect}`;
}
