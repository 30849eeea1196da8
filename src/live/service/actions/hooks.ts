/** Which hook does an action, and what exactly it would run: everything that is decided before anything happens. */
import { UserError } from "../../../base/errors.ts";
import { fits } from "../../../base/patterns.ts";
import { harmless } from "../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { originOf } from "../alerts/post.ts";
import type { ActionHook, ActionsConfig } from "./types.ts";

const DEFAULT_TIMEOUT_SECONDS = 60;
const MOST_TIMEOUT_SECONDS = 3600;
/** Names that can be no option of a program and no syntax of a shell. */
export const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,255}$/;
/** Names of machines come from agents, and an agent may lie: only what is a host name and nothing else gets to a hook. */
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?";
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
/** Slurm takes ALL for every node there is; nobody means the machine that the service runs on. */
const MEANS_OTHERS = ["all", "localhost", "default"];
const PLACEHOLDER = /\{([a-z]+)\}/g;
const PLACEHOLDERS = [
  "machine",
  "replacement",
  "exclude",
  "job",
  "run",
  "incident",
  "rank",
  "counts",
  "reason",
];

export type HookPlan =
  | { readonly kind: "command"; readonly argv: readonly string[]; readonly timeoutMs: number }
  | {
      readonly kind: "webhook";
      readonly url: string;
      readonly body: string;
      readonly timeoutMs: number;
    };

/** Thrown at the start: what is wrong with the configured hooks, with the way into the file. */
export function checkHooks({ hooks }: ActionsConfig): void {
  hooks.forEach(({ do: word, command, webhook }, i) => {
    const at = `actions.hooks[${i}] (${harmless(word)})`;
    if ((command === undefined) === (webhook === undefined))
      throw new UserError(`${at} needs a command or a webhook, one of them`, "see the guide", 2);
    if (!command) return;
    if (command.length === 0 || command[0] === "" || /[{}]/.test(command[0]!))
      throw new UserError(
        `${at}: the program has to be named as it is`,
        'the first word of "command" is a program; {machine} and the like go into the others',
        2,
      );
    for (const [whole, name] of command.join(" ").matchAll(PLACEHOLDER)) {
      if (!PLACEHOLDERS.includes(name!))
        throw new UserError(
          `${at}: ${whole} is nothing that can be put in`,
          `there are ${PLACEHOLDERS.map((known) => `{${known}}`).join(", ")}`,
          2,
        );
    }
  });
}

export function isPlainHostName(name: string): boolean {
  return name.length <= 253 && HOST_NAME.test(name) && !MEANS_OTHERS.includes(name.toLowerCase());
}

export function hookFor(action: IncidentAction, { hooks }: ActionsConfig): ActionHook | null {
  const machine = action.data["machine"];
  const found = hooks.find(
    (hook) =>
      hook.do === action.do &&
      (hook.machine === undefined || (typeof machine === "string" && fits(machine, hook.machine))),
  );
  return found ?? null;
}

/** What the hook would do, or one sentence why it may not. */
export function planOf(
  action: IncidentAction,
  incident: Incident,
  hook: ActionHook,
): HookPlan | { readonly kind: "refused"; readonly why: string } {
  const refused = (why: string) => ({ kind: "refused", why }) as const;
  const { machine } = action.data as { machine?: unknown };
  if (typeof machine === "string" && !isPlainHostName(machine))
    return refused(`${harmless(machine).slice(0, 80)} is no plain host name`);
  if (!SAFE_NAME.test(incident.job) || !SAFE_NAME.test(incident.id))
    return refused("the names of job and incident have to be plain words");
  const seconds = hook.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
  const timeoutMs = Math.min(Math.max(0.1, seconds), MOST_TIMEOUT_SECONDS) * 1000;
  const values = valuesOf(action, incident);
  if (hook.webhook !== undefined) {
    const body = JSON.stringify({
      action: { id: action.id, do: action.do, target: action.target, data: action.data },
      job: incident.job,
      run: incident.run,
      incident: incident.id,
      reason: values.get("reason"),
    });
    return { kind: "webhook", url: hook.webhook, body, timeoutMs };
  }
  const [program, ...args] = hook.command ?? [];
  if (program === undefined || program === "") return refused("its hook has no command");
  let lacking: string | null = null;
  const filled = args.map((arg) =>
    arg.replace(PLACEHOLDER, (whole, name: string) => {
      const value = values.get(name);
      if (value === undefined) lacking ??= whole;
      return value ?? "";
    }),
  );
  if (lacking !== null)
    return refused(`its hook wants ${String(lacking)}, which is not known here`);
  return { kind: "command", argv: [program, ...filled], timeoutMs };
}

/** Exactly what would happen; an address only as far as it is no secret. */
export function planWords(plan: HookPlan): string {
  const limit = `within ${plan.timeoutMs / 1000} s`;
  return harmless(
    plan.kind === "command"
      ? `run ${JSON.stringify(plan.argv)} ${limit}`
      : `post to ${originOf(plan.url)} ${limit}: ${plan.body.slice(0, 2000)}`,
  );
}

function valuesOf(action: IncidentAction, incident: Incident): ReadonlyMap<string, string> {
  const { machine, replacement, exclude, rank, counts, cause } = action.data as {
    machine?: unknown;
    replacement?: unknown;
    exclude?: unknown;
    rank?: unknown;
    counts?: unknown;
    cause?: unknown;
  };
  const values = new Map([
    ["job", incident.job],
    ["incident", incident.id],
    ["reason", reasonOf(incident, typeof cause === "string" ? cause : null)],
  ]);
  const isName = (name: unknown): name is string =>
    typeof name === "string" && isPlainHostName(name);
  if (SAFE_NAME.test(incident.run)) values.set("run", incident.run);
  if (isName(machine)) values.set("machine", machine);
  if (isName(replacement)) values.set("replacement", replacement);
  if (Array.isArray(exclude) && exclude.every(isName)) values.set("exclude", exclude.join(","));
  if (Number.isSafeInteger(rank) && (rank as number) >= 0) values.set("rank", String(rank));
  if (Array.isArray(counts) && counts.every((n) => Number.isSafeInteger(n) && n >= 0))
    values.set("counts", counts.join(","));
  return values;
}

/** Only our own words: nothing that a log said gets into somebody's command line. */
export function reasonOf({ kind, job, id }: Incident, cause: string | null): string {
  const what = cause === null ? kind : `${kind}, ${cause}`;
  return `faultline: ${what} in job ${job}, incident ${id}`.replace(/[^A-Za-z0-9 .,:_-]/g, "_");
}
