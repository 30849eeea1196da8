/** Which driver does an action: the first hook that fits, then the configured drivers. */
import { harmless } from "../../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../../model/incident.ts";
import { hookFor, isPlainHostName, reasonOf, SAFE_NAME } from "../hooks.ts";
import type { ActionsConfig } from "../types.ts";
import { done, type Plan, type Refused, type Task } from "./driver.ts";
import { hookPlan } from "./hook.ts";
import { kubernetesPlan } from "./kubernetes.ts";
import { slurmPlan } from "./slurm.ts";
import { webhookPlan } from "./webhook.ts";

/** Whether something is configured that does it. */
export function canDo(action: IncidentAction, config: ActionsConfig): boolean {
  if (hookFor(action, config) !== null || action.data["asks"] === true) return true;
  const { kubernetes, slurm, webhook } = config.drivers ?? {};
  return [kubernetes, slurm, webhook].some((one) => one?.do.includes(action.do) ?? false);
}

/** Exactly what would be done, or one sentence why nothing can be. */
export function planFor(
  action: IncidentAction,
  incident: Incident,
  config: ActionsConfig,
): Plan | Refused {
  const hook = hookFor(action, config);
  if (hook) return hookPlan(action, incident, hook);
  const task = taskOf(action, incident);
  if ("refused" in task) return task;
  if (action.data["asks"] === true) return jobPlan(task.job);
  const { kubernetes, slurm, webhook } = config.drivers ?? {};
  let plan: Plan | Refused;
  if (kubernetes?.do.includes(action.do)) plan = kubernetesPlan(task, kubernetes);
  else if (slurm?.do.includes(action.do)) plan = slurmPlan(task, slurm);
  else if (webhook?.do.includes(action.do)) plan = webhookPlan(task, webhook);
  else return { refused: `no hook and no driver is configured for ${harmless(action.do)}` };
  if ("refused" in plan || task.replacement === null) return plan;
  return { ...plan, words: `replace ${task.machine} by ${task.replacement}: ${plan.words}` };
}

/**
 * The job itself, where it asks the service for its micro-batches (docs/guides/microbatches.md): "done" on the incident is
 * the permission to give out shares that suit the replicas' speeds, so nothing can be left half done.
 */
function jobPlan(job: string): Plan {
  const words = "micro-batches by their speed, from their next iterations until the run ends";
  const allowed = async () => done(`replicas of ${job} take ${words}`, true);
  return {
    words: `give the replicas of ${job} micro-batches by their measured speed, until the run ends`,
    run: allowed,
    settle: allowed,
    undo: {
      words: `give the replicas of ${job} equal shares again`,
      run: async () => done(`replicas of ${job} take equal shares again`),
    },
  };
}

function taskOf(action: IncidentAction, incident: Incident): Task | Refused {
  const {
    machine = null,
    replacement = null,
    cause,
  } = action.data as Record<string, unknown> & {
    machine?: unknown;
    replacement?: unknown;
    cause?: unknown;
  };
  for (const name of [machine, replacement])
    if (typeof name === "string" ? !isPlainHostName(name) : name !== null)
      return { refused: `${harmless(JSON.stringify(name)).slice(0, 80)} is no plain host name` };
  if (!SAFE_NAME.test(incident.job) || !SAFE_NAME.test(incident.id))
    return { refused: "the names of job and incident have to be plain words" };
  return {
    id: `${incident.id}/${action.id}`,
    do: action.do,
    target: action.target,
    job: incident.job,
    run: incident.run,
    incident: incident.id,
    action: action.id,
    reason: reasonOf(incident, typeof cause === "string" ? cause : null),
    machine: machine as string | null,
    replacement: replacement as string | null,
    data: action.data,
  };
}
