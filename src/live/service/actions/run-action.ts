/** Does one action through its hook, with a row of the audit trail before and after. */
import { harmless } from "../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { post } from "../alerts/post.ts";
import { hookFor, type Plan, planOf, planWords } from "./hooks.ts";
import { DAY_MS, limitWords, TAKE_OUT, UNKNOWN } from "./limits.ts";
import { suspectsToTakeOut } from "./propose.ts";
import { runCommand } from "./run-command.ts";
import type { ActionHook, ActionsConfig, RunEnv, RunResult } from "./types.ts";

const MOST_DETAIL = 4096;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export type AuditWord =
  | "propose"
  | "approve"
  | "dismiss"
  | "dry-run"
  | "run"
  | "outcome"
  | "refuse"
  | "recover";

/**
 * `beforeStart` is called when all is decided and written, at the last moment before the hook: the record has to say
 * "running" then. Where it rejects, nothing is run. Never rejects itself.
 */
export async function runAction(
  action: IncidentAction,
  incident: Incident,
  config: ActionsConfig,
  env: RunEnv,
  beforeStart: () => Promise<void> = async () => {},
): Promise<RunResult> {
  const write = (what: AuditWord, detail: string): Promise<void> =>
    writeAudit(env, env.who, what, incident.id, action.id, detail);
  const refuse = async (why: string): Promise<RunResult> => {
    await write("refuse", why).catch(() => undefined);
    return { ok: false, outcome: why, state: "refused" };
  };
  try {
    if (action.state === "done" || action.state === "running" || action.state === "dismissed")
      return await refuse(`the action is ${action.state} already`);
    const hook = hookFor(action, config);
    if (!hook) return await refuse(`no hook is configured for ${harmless(action.do)}`);
    const plan = planOf(action, incident, hook);
    if (plan.kind === "refused") return await refuse(plan.why);
    if (!stillFollows(action, incident, config))
      return await refuse("the verdict does not say for sure, or no longer, that it is at fault");
    const limit = await overLimit(action, incident, config, env);
    if (limit !== null) return await refuse(limit);
    if (config.dryRun) {
      const outcome = `dry run, would ${planWords(plan)}`;
      await write("dry-run", outcome);
      return { ok: true, outcome, state: "dry-run" };
    }
    try {
      await write("run", planWords(plan));
      await beforeStart();
    } catch (error) {
      return await refuse(`not run, for it could not be written down: ${messageOf(error)}`);
    }
    const result = await carryOut(plan, hook, action, incident, env);
    const isWritten = await write("outcome", result.outcome).then(
      () => true,
      () => false,
    );
    const remark = isWritten ? "" : " (not in the audit trail, which could not be written)";
    return { ...result, outcome: `${result.outcome}${remark}` };
  } catch (error) {
    return { ok: false, outcome: `not run: ${messageOf(error)}`, state: "refused" };
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
  action: IncidentAction,
  incident: Incident,
  config: ActionsConfig,
  env: RunEnv,
): Promise<string | null> {
  const { machine } = action.data as { machine?: unknown };
  if (!TAKE_OUT.includes(action.do)) return null;
  if (typeof machine !== "string") return "no machine is at fault";
  const taken = await env.taken(incident.job, env.nowMs() - DAY_MS);
  return limitWords(machine, taken, incident.job, config);
}

async function carryOut(
  plan: Plan,
  hook: ActionHook,
  action: IncidentAction,
  incident: Incident,
  env: RunEnv,
): Promise<RunResult> {
  const seconds = plan.timeoutMs / 1000;
  if (plan.kind === "webhook") {
    // Once only: nobody knows whether a receiver can tell a repetition.
    const headers = { "x-faultline-delivery": `${incident.id}-${action.id}` };
    const answer = await post(env.fetch, plan.url, plan.body, headers, plan.timeoutMs);
    if (answer.ok)
      return done(`the hook took it${answer.answer === "" ? "" : `: ${answer.answer}`}`);
    return failed(`${answer.how === "silent" ? UNKNOWN : ""}the hook ${answer.why}`);
  }
  const environment = environmentOf(hook, env.environment);
  const { how, status, output } = await runCommand(plan.argv, environment, plan.timeoutMs);
  const program = harmless(plan.argv[0]!);
  const said = output === "" ? "" : `: ${output}`;
  switch (how) {
    case "not-started":
      return failed(`${program} could not be started${said}`);
    case "timeout":
      return failed(`${UNKNOWN}${program} was ended after ${seconds} s${said}`);
    case "signal":
      return failed(`${UNKNOWN}${program} was ended by a signal${said}`);
    case "exit":
      return status === 0
        ? done(`${program} ended well${said}`)
        : failed(`${program} ended with status ${status}${said}`);
  }
}

function environmentOf(
  hook: ActionHook,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const environment: Record<string, string> = { PATH: own["PATH"] ?? DEFAULT_PATH };
  for (const name of ["HOME", ...(hook.environment ?? [])]) {
    const value = own[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}

export async function writeAudit(
  env: Pick<RunEnv, "audit" | "newId" | "nowMs">,
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

function done(outcome: string): RunResult {
  return { ok: true, outcome: outcome.slice(0, MOST_DETAIL), state: "done" };
}

function failed(outcome: string): RunResult {
  return { ok: false, outcome: outcome.slice(0, MOST_DETAIL), state: "failed" };
}

function messageOf(error: unknown): string {
  return harmless(error instanceof Error ? error.message : String(error)).slice(0, 300);
}
