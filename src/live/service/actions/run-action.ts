/** Does one action through its hook, with a row of the audit trail before and after. */
import { errorText } from "../../../base/errors.ts";
import { type ChildProcess, spawn } from "node:child_process";
import { harmless } from "../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { post } from "../alerts/post.ts";
import { hookFor, type Plan, planOf, planWords } from "./hooks.ts";
import { DAY_MS, limitWords, TAKE_OUT, UNKNOWN } from "./limits.ts";
import { suspectsToTakeOut } from "./propose.ts";
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
      return await refuse("the verdict does not, or no longer, name it with enough confidence");
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
  if (typeof machine !== "string") return "the verdict names no machine";
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
  return harmless(errorText(error)).slice(0, 300);
}

const MOST_OUTPUT_BYTES = 4096;
const GRACE_MS = 2000;
/** How long pipes are read that others hold open after the program has ended. */
const LINGER_MS = 300;

interface CommandResult {
  readonly how: "exit" | "signal" | "timeout" | "not-started";
  readonly status: number | null;
  /** The last of what it said on both streams: one line, harmless. */
  readonly output: string;
}

/** A program of the operator's, run without a shell, in a process group of its own so that all of it can be ended. */
async function runCommand(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
  timeoutMs: number,
  graceMs: number = GRACE_MS,
): Promise<CommandResult> {
  const tail = makeTail();
  const notStarted = (error: unknown): CommandResult => {
    const { code, message } = error as { code?: string; message?: string };
    return { how: "not-started", status: null, output: harmless(code ?? message ?? "unknown") };
  };
  let child: ChildProcess;
  try {
    child = spawn(argv[0]!, argv.slice(1), {
      cwd: "/",
      env: { ...environment },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    return notStarted(error);
  }
  child.stdout?.on("data", tail.add);
  child.stderr?.on("data", tail.add);
  return await new Promise((resolve) => {
    let isLate = false;
    let isKilled = false;
    let ended: CommandResult | null = null;
    let linger: NodeJS.Timeout | undefined;
    const finish = (): void => {
      // Grandchildren that ignore SIGTERM are waited for until they are killed.
      if (!ended || (isLate && !isKilled)) return;
      clearTimeout(limit);
      clearTimeout(linger);
      child.stdout?.destroy();
      child.stderr?.destroy();
      resolve({ ...ended, output: tail.text() });
    };
    const limit = setTimeout(() => {
      isLate = true;
      killGroup(child.pid, "SIGTERM");
      setTimeout(() => {
        killGroup(child.pid, "SIGKILL");
        isKilled = true;
        finish();
      }, graceMs);
    }, timeoutMs);
    child.once("error", (error) => {
      clearTimeout(limit);
      clearTimeout(linger);
      resolve(notStarted(error));
    });
    child.once("exit", (status) => {
      // From now on its number may belong to others: the limit is for the program, not for what it left behind.
      if (!isLate) clearTimeout(limit);
      const how = isLate ? "timeout" : status === null ? "signal" : "exit";
      ended = { how, status, output: "" };
      linger = setTimeout(finish, LINGER_MS);
    });
    child.once("close", finish);
  });
}

function killGroup(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
}

function makeTail(): { add: (chunk: Buffer) => void; text: () => string } {
  let kept = Buffer.alloc(0);
  let isCut = false;
  return {
    add(chunk) {
      const all = Buffer.concat([kept, chunk.subarray(-MOST_OUTPUT_BYTES)]);
      isCut ||= all.length > MOST_OUTPUT_BYTES || chunk.length > MOST_OUTPUT_BYTES;
      kept = all.subarray(-MOST_OUTPUT_BYTES);
    },
    text() {
      const lines = kept.toString("utf8").split(/\r?\n/);
      const said = lines.map((line) => harmless(line.trim())).filter((line) => line !== "");
      return `${isCut ? "…" : ""}${said.join(" | ")}`;
    },
  };
}
