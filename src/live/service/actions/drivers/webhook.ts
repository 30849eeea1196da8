/** One address that gets every action of the configured kinds as JSON, and its undoing where the receiver can do that. */
import { harmless } from "../../../../base/text.ts";
import { originOf, post } from "../../alerts/post.ts";
import {
  done,
  type DriverEnv,
  failed,
  type Outcome,
  type Plan,
  type Task,
  unknown,
} from "./driver.ts";

export interface WebhookConfig {
  readonly do: readonly string[];
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the receiver takes `"verb": "undo"`, too. */
  readonly canUndo: boolean;
  readonly timeoutSeconds: number;
}

const MOST_SHOWN = 2000;

export function webhookPlan(task: Task, config: WebhookConfig): Plan {
  const send = (verb: "run" | "undo"): Omit<Plan, "undo"> => {
    const body = payloadOf(task, verb);
    const words = `post to ${originOf(config.url)} within ${config.timeoutSeconds} s: ${body.slice(0, MOST_SHOWN)}`;
    return {
      words: harmless(words),
      run: (env) => deliver(task, verb, body, config, env),
    };
  };
  return config.canUndo ? { ...send("run"), undo: send("undo") } : send("run");
}

function payloadOf(task: Task, verb: "run" | "undo"): string {
  const { do: word, target, job, run, incident, action, reason, machine, replacement, data } = task;
  return JSON.stringify({
    verb,
    do: word,
    target,
    job,
    run,
    incident,
    action,
    reason,
    machines: machine === null ? [] : [machine],
    exclude: data["exclude"] ?? (machine === null ? [] : [machine]),
    replacement,
    swaps: data["swaps"] ?? [],
    placement: data["placement"] ?? null,
    counts: data["counts"] ?? null,
    weights: data["weights"] ?? null,
    rank: data["rank"] ?? null,
    cause: data["cause"] ?? null,
  });
}

/** Once only; the delivery's id is the same for each attempt that a person approves. */
async function deliver(
  { incident, action }: Task,
  verb: string,
  body: string,
  { url, headers, canUndo, timeoutSeconds }: WebhookConfig,
  env: DriverEnv,
): Promise<Outcome> {
  const all = { ...headers, "x-faultline-delivery": `${incident}-${action}-${verb}` };
  const answer = await post(env.fetch, url, body, all, 1000 * timeoutSeconds);
  if (answer.ok)
    return done(`the receiver took it${answer.answer === "" ? "" : `: ${answer.answer}`}`, canUndo);
  if (answer.how === "silent") return unknown(`the receiver ${answer.why}`, canUndo);
  return failed(`the receiver ${answer.why}`);
}
