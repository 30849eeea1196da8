/** One action from somebody's word to its outcome: all that must hold before anything happens, then the driver. */
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { AuditWord } from "../view.ts";
import { planFor } from "./drivers/choose.ts";
import type { Outcome, Plan } from "./drivers/driver.ts";
import {
  atOnceWords,
  DAY_MS,
  HOUR_MS,
  hourWords,
  limitWords,
  quorumWords,
  TAKE_OUT,
  UNKNOWN,
} from "./limits.ts";
import { suspectsToTakeOut } from "./propose.ts";
import type { ActionsConfig, ActionsEnv } from "./types.ts";

const MOST_DETAIL = 4096;

/** On whose word: a token's name, or the service itself. */
export const SERVICE = "service";

export interface Order {
  readonly action: IncidentAction;
  readonly incident: Incident;
  readonly who: string;
  readonly isDry: boolean;
}

/** A plan that may be run now, or one sentence why not. Never rejects. */
export async function allowed(
  order: Order,
  config: ActionsConfig,
  env: ActionsEnv,
): Promise<Plan | { readonly refused: string }> {
  const { action, incident, isDry } = order;
  if (["done", "running", "undoing", "dismissed"].includes(action.state))
    return { refused: `the action is ${action.state} already` };
  if (incident.state === "resolved") return { refused: "the incident is over" };
  try {
    const plan = planFor(action, incident, config);
    if ("refused" in plan) return plan;
    const off = isDry ? null : await env.switchedOff();
    if (off !== null) return { refused: off };
    if (!stillFollows(action, incident, config))
      return { refused: "the verdict does not, or no longer, name it with enough confidence" };
    const limit = await overLimit(order, config, env);
    return limit === null ? plan : { refused: limit };
  } catch (error) {
    return { refused: `not run: ${messageOf(error)}` };
  }
}

/** A verdict may change between the proposal and somebody's word: the machine of before is healthy then. */
function stillFollows(action: IncidentAction, incident: Incident, config: ActionsConfig): boolean {
  if (!TAKE_OUT.includes(action.do)) return true;
  const { machine } = action.data as { machine?: unknown };
  const blamed = incident.verdict ? suspectsToTakeOut(incident.verdict, config) : [];
  return blamed.some((one) => one.machine === machine);
}

async function overLimit(
  { action, incident, who, isDry }: Order,
  config: ActionsConfig,
  env: ActionsEnv,
): Promise<string | null> {
  const { job } = incident;
  const nowMs = env.nowMs();
  if (!isDry) {
    const hourly = hourWords(await env.runs(nowMs - HOUR_MS), job, config);
    if (hourly !== null) return hourly;
  }
  if (!TAKE_OUT.includes(action.do)) return null;
  const { machine, replacement } = action.data as { machine?: unknown; replacement?: unknown };
  if (typeof machine !== "string") return "the verdict names no machine";
  const taken = await env.taken(job, nowMs - DAY_MS);
  const byPerson = who !== SERVICE;
  const spare = typeof replacement === "string" ? replacement : null;
  return (
    limitWords(machine, taken, job, config) ??
    quorumWords(machine, spare, taken, env.machines(job), byPerson, config) ??
    (byPerson ? null : atOnceWords(machine, await env.taken(job, nowMs - HOUR_MS)))
  );
}

/** What came of running it: the record's state, its words, and whether it can be undone. Never rejects. */
export async function carriedOut(
  run: Plan["run"],
  env: ActionsEnv,
): Promise<Pick<IncidentAction, "state" | "outcome" | "canUndo">> {
  let outcome: Outcome;
  try {
    outcome = await run(env);
  } catch (error) {
    outcome = { how: "unknown", says: messageOf(error) };
  }
  const { how, says, canUndo = false } = outcome;
  const words = `${how === "unknown" ? UNKNOWN : ""}${says}`;
  return {
    state: how === "done" ? "done" : "failed",
    outcome: words.slice(0, MOST_DETAIL),
    ...(canUndo ? { canUndo } : {}),
  };
}

export async function writeAudit(
  env: Pick<ActionsEnv, "audit" | "newId" | "nowMs">,
  who: string,
  what: AuditWord,
  incident: string,
  action: string,
  detail: string,
): Promise<void> {
  await env.audit({
    id: env.newId(),
    atMs: env.nowMs(),
    who: harmless(who),
    what,
    incident,
    action,
    detail: harmless(detail).slice(0, MOST_DETAIL),
  });
}

export function messageOf(error: unknown): string {
  return harmless(errorText(error)).slice(0, 300);
}
