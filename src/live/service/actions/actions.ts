/**
 * The life of actions: proposed, approved by somebody (or by configuration), run once, remembered. Incident.actions is
 * the only state; what was running when the service died has an unknown outcome, and is not run again by itself.
 */
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { type ActionVerb, Refusal } from "../view.ts";
import { checkHooks } from "./hooks.ts";
import { DAY_MS, TAKE_OUT, UNKNOWN } from "./limits.ts";
import { LEAST_CONFIDENCE, mergeActions, proposeActions } from "./propose.ts";
import { type AuditWord, runAction, writeAudit } from "./run-action.ts";
import type { ActionsConfig, ActionsEnv, RunEnv } from "./types.ts";

export interface Actions {
  /** The incident's actions with what its verdict proposes now; new ones are in the audit trail. */
  propose(incident: Incident): Promise<readonly IncidentAction[]>;
  /** Rejects with Refusal where it cannot be; else the record with what came of it. */
  act(
    incident: Incident,
    action: string,
    verb: ActionVerb,
    who: string,
    dryRun: boolean,
  ): Promise<Incident>;
  /** Runs what may run without a person; does nothing unless that is configured. Never rejects. */
  runAutomatic(incident: Incident): Promise<void>;
  /** Once after a start, for each incident: ends what was running when the service died. */
  recover(incident: Incident): Promise<Incident>;
}

const MOST_STARTED = 10_000;

function keyOf(incident: Incident, action: string): string {
  return `${incident.id} ${action}`;
}

/** Throws UserError where the hooks are malformed. */
export function makeActions(config: ActionsConfig, env: ActionsEnv): Actions {
  checkHooks(config);
  /** Of this process: between the decision and the record's "running" nothing else may decide the same. */
  const inHand = new Set<string>();
  let recent: { job: string; machine: string; atMs: number }[] = [];
  /** Started by this process, and whether it was done: a caller with an older record must not start it again. */
  const started = new Map<string, boolean>();

  const withRecent = (known: readonly string[], job: string, sinceMs: number): string[] => {
    const own = recent.filter((one) => one.job === job && one.atMs >= sinceMs);
    return [...new Set([...known, ...own.map(({ machine }) => machine)])];
  };
  const write = (who: string, what: AuditWord, incident: string, action: string, detail: string) =>
    writeAudit(env, who, what, incident, action, detail);

  /** What a person decides is written down, or it is not done. */
  async function decide(who: string, what: AuditWord, incident: Incident, action: IncidentAction) {
    const detail = `${action.do} ${action.target}`;
    await write(who, what, incident.id, action.id, detail).catch(() => {
      throw new Refusal(503, "the audit trail cannot be written at the moment, so nothing is done");
    });
  }

  async function propose(incident: Incident): Promise<readonly IncidentAction[]> {
    if (incident.state === "resolved") return incident.actions;
    const sinceMs = env.nowMs() - DAY_MS;
    const stored = await env.taken(incident.job, sinceMs).catch(() => []);
    const taken = withRecent(stored, incident.job, sinceMs);
    const merged = mergeActions(incident.actions, proposeActions(incident, config, taken));
    const known = new Set(incident.actions.map(({ id }) => id));
    for (const action of merged) {
      if (known.has(action.id)) continue;
      const detail = `${action.do} ${action.target}: ${action.why}`;
      await write("service", "propose", incident.id, action.id, detail).catch(() =>
        env.log(`actions: the audit trail lacks a proposal of ${harmless(incident.id)}`),
      );
    }
    return merged;
  }

  async function act(
    incident: Incident,
    id: string,
    verb: ActionVerb,
    who: string,
    dryRun: boolean,
  ): Promise<Incident> {
    const action = incident.actions.find((one) => one.id === id);
    if (!action) throw new Refusal(404, "the incident has no such action");
    const key = keyOf(incident, id);
    if (inHand.has(key)) throw new Refusal(409, "the action is already running");
    inHand.add(key);
    try {
      return verb === "dismiss"
        ? await dismiss(incident, action, who)
        : await approve(incident, action, who, dryRun);
    } finally {
      inHand.delete(key);
    }
  }

  async function dismiss(
    incident: Incident,
    action: IncidentAction,
    who: string,
  ): Promise<Incident> {
    if (action.state === "done" || action.state === "running" || action.state === "dismissed")
      throw new Refusal(409, `the action is ${action.state} already`);
    await decide(who, "dismiss", incident, action);
    return await env.put(incident.id, { ...action, state: "dismissed", changedMs: env.nowMs() });
  }

  async function approve(
    incident: Incident,
    action: IncidentAction,
    who: string,
    dryRun: boolean,
  ): Promise<Incident> {
    const isDry = dryRun || config.dryRun;
    const key = keyOf(incident, action.id);
    const isDone = started.get(key);
    if (isDone === true || (isDone === false && action.state !== "failed"))
      throw new Refusal(409, "the action was run already");
    if (!isDry) await decide(who, "approve", incident, action);
    const reserved: (typeof recent)[number][] = [];
    const runEnv: RunEnv = {
      nowMs: env.nowMs,
      fetch: env.fetch,
      audit: env.audit,
      newId: env.newId,
      environment: env.environment,
      who,
      async taken(job, sinceMs) {
        const stored = await env.taken(job, sinceMs);
        const taken = withRecent(stored, job, sinceMs);
        reserved.push(...reserve(action, job));
        return taken;
      },
    };
    const beforeStart = async (): Promise<void> => {
      const running = { ...action, state: "running" as const, outcome: "", changedMs: env.nowMs() };
      await env.put(incident.id, running);
      if (started.size >= MOST_STARTED) started.delete(started.keys().next().value!);
      started.set(key, false);
    };
    const isNow = { ...config, dryRun: isDry };
    const result = await runAction(action, incident, isNow, runEnv, beforeStart);
    if (result.state !== "done" && !result.outcome.startsWith(UNKNOWN))
      recent = recent.filter((one) => !reserved.includes(one));
    if (result.state === "done") started.set(key, true);
    if (result.state === "refused") throw new Refusal(409, result.outcome);
    // A rehearsal does not undo what is known of a failure.
    const isRehearsed = result.state === "dry-run" && action.state === "failed";
    const state = isRehearsed ? "failed" : result.state;
    const outcome = isRehearsed ? `${action.outcome}; ${result.outcome}` : result.outcome;
    return await env.put(incident.id, { ...action, state, outcome, changedMs: env.nowMs() });
  }

  /** Two incidents of a job may be decided on at once: counting and taking a place is one step. */
  function reserve(action: IncidentAction, job: string): typeof recent {
    const { machine } = action.data as { machine?: unknown };
    if (!TAKE_OUT.includes(action.do) || typeof machine !== "string") return [];
    const atMs = env.nowMs();
    recent = recent.filter((one) => atMs - one.atMs < DAY_MS);
    const own = { job, machine, atMs };
    recent.push(own);
    return [own];
  }

  return {
    propose,
    act,
    async runAutomatic(incident) {
      if (config.approval !== "automatic") return;
      if (incident.state !== "confirmed" && incident.state !== "relapsed") return;
      const least = config.leastConfidence ?? LEAST_CONFIDENCE;
      if ((incident.verdict?.confidence ?? 0) < least) return;
      for (const action of incident.actions) {
        if (action.state !== "proposed" || !action.canRun) continue;
        try {
          await act(incident, action.id, "approve", "service", false);
        } catch (error) {
          const why = errorText(error);
          env.log(
            `actions: ${action.id} of ${harmless(incident.id)} was not run: ${harmless(why)}`,
          );
        }
      }
    },
    async recover(incident) {
      let latest = incident;
      for (const action of incident.actions) {
        if (action.state !== "running" && action.state !== "approved") continue;
        const outcome = `${UNKNOWN}the service stopped while it was ${action.state}; it is not run again by itself`;
        await write("service", "recover", incident.id, action.id, outcome).catch(() => undefined);
        const changed = { ...action, state: "failed" as const, outcome, changedMs: env.nowMs() };
        latest = await env.put(incident.id, changed);
      }
      return latest;
    },
  };
}
