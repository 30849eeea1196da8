/**
 * The life of actions: proposed, approved by somebody (or by configuration), run once, undone where that can be,
 * remembered. Incident.actions is the only state; what was running when the service died is looked up where its driver can
 * see whether it was done, has an unknown outcome elsewhere, and is not run again by itself.
 */
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import { type ActionVerb, type AuditWord, Refusal } from "../view.ts";
import { planFor } from "./drivers/choose.ts";
import { checkHooks } from "./hooks.ts";
import { DAY_MS, TAKE_OUT, UNKNOWN } from "./limits.ts";
import { LEAST_CONFIDENCE, mergeActions, proposeActions } from "./propose.ts";
import { isDue } from "./due.ts";
import { allowed, carriedOut, messageOf, type Order, SERVICE, writeAudit } from "./run-action.ts";
import type { ActionsConfig, ActionsEnv } from "./types.ts";

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
  /** Runs what may run without a person and is due; does nothing unless that is configured. Never rejects. */
  runAutomatic(incident: Incident): Promise<void>;
  /** The same for what was not due, or refused, before. */
  runDue(incident: Incident): Promise<void>;
  /** Once after a start, for each incident: ends what was running when the service died. */
  recover(incident: Incident): Promise<Incident>;
}

const MOST_STARTED = 10_000;
/** What was refused may be allowed later: the hour is over, the switch is on. */
const TRY_AGAIN_MS = 60_000;

function refusalWords(why: string): string {
  return `not run by itself: ${harmless(why)}`;
}

function keyOf(incident: Incident, action: string): string {
  return `${incident.id} ${action}`;
}

/** Throws UserError where the hooks are malformed. */
export function makeActions(config: ActionsConfig, given: ActionsEnv): Actions {
  checkHooks(config);
  /** Of this process: between the decision and the record's "running" nothing else may decide the same. */
  const inHand = new Set<string>();
  /** Taken out by this process: records may reach the history later. */
  let recent: { readonly job: string; readonly machine: string; readonly atMs: number }[] = [];
  /** Started by this process, and whether it was done: a caller with an older record must not start it again. */
  const started = new Map<string, boolean>();
  /** Not due, or refused, when they were last looked at: when to look again. */
  const waiting = new Map<string, number>();

  /** Begun by this process: the trail is read only so far back, and dry runs are in it, too. */
  let begun: { readonly incident: string; readonly atMs: number }[] = [];
  const env: ActionsEnv = {
    ...given,
    async runs(sinceMs) {
      const known = await given.runs(sinceMs);
      begun = begun.filter(({ atMs }) => atMs >= sinceMs);
      return known.length >= begun.length ? known : begun;
    },
    async taken(job, sinceMs) {
      const known = await given.taken(job, sinceMs);
      const own = recent.filter((one) => one.job === job && one.atMs >= sinceMs);
      return [...new Set([...known, ...own.map(({ machine }) => machine)])];
    },
  };
  const write = (who: string, what: AuditWord, incident: string, action: string, detail: string) =>
    writeAudit(env, who, what, incident, action, detail);

  /** One decision at a time: limits count what others have just begun. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(decide: () => Promise<T>): Promise<T> => {
    const turn = last.then(decide, decide);
    last = turn.catch(() => undefined);
    return turn;
  };

  /** What a person decides is written down, or it is not done. */
  async function decide(who: string, what: AuditWord, incident: Incident, action: IncidentAction) {
    const detail = `${action.do} ${action.target}`;
    await write(who, what, incident.id, action.id, detail).catch(() => {
      throw new Refusal(503, "the audit trail cannot be written at the moment, so nothing is done");
    });
  }

  async function freeSpares(incident: Incident): Promise<readonly string[]> {
    const { spares = [] } = config;
    if (spares.length === 0) return [];
    const named = await env.sparesNamed();
    const others = named.filter(({ by }) => !by.startsWith(`${incident.id} `));
    const inUse = new Set(others.map(({ spare }) => spare));
    return spares.filter((name) => !inUse.has(name));
  }

  async function propose(incident: Incident): Promise<readonly IncidentAction[]> {
    if (incident.state === "resolved") return incident.actions;
    const taken = await env.taken(incident.job, env.nowMs() - DAY_MS).catch(() => []);
    const spares = await freeSpares(incident).catch(() => []);
    const shares = env.shares(incident.job);
    const proposed = proposeActions(incident, config, taken, spares, shares);
    const merged = mergeActions(incident.actions, proposed);
    const known = new Set(incident.actions.map(({ id }) => id));
    for (const action of merged) {
      if (known.has(action.id)) continue;
      const detail = `${action.do} ${action.target}: ${action.why}`;
      await write(SERVICE, "propose", incident.id, action.id, detail).catch(() =>
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
      if (verb === "dismiss") return await dismiss(incident, action, who);
      const order = { incident, action, who, isDry: dryRun || config.dryRun };
      return verb === "undo" ? await undo(order) : await approve(order);
    } finally {
      inHand.delete(key);
    }
  }

  async function dismiss(
    incident: Incident,
    action: IncidentAction,
    who: string,
  ): Promise<Incident> {
    if (["done", "running", "undoing", "dismissed"].includes(action.state))
      throw new Refusal(409, `the action is ${action.state} already`);
    if (action.canUndo) throw new Refusal(409, "a part of it was done: undo it first");
    await decide(who, "dismiss", incident, action);
    return await env.put(incident.id, changed(action, { state: "dismissed" }));
  }

  async function refuse({ incident, action, who }: Order, why: string): Promise<never> {
    await write(who, "refuse", incident.id, action.id, why).catch(() => undefined);
    // On the incident, too: somebody may approve it after all.
    if (who === SERVICE && ["proposed", "dry-run"].includes(action.state))
      await env.put(incident.id, { ...action, outcome: refusalWords(why) }).catch(() => undefined);
    throw new Refusal(409, why);
  }

  async function approve(order: Order): Promise<Incident> {
    const { incident, action, who, isDry } = order;
    const key = keyOf(incident, action.id);
    const wasDone = started.get(key);
    const isRepeated = wasDone === false && action.state !== "failed" && action.state !== "undone";
    if (wasDone === true || isRepeated) throw new Refusal(409, "the action was run already");
    if (!isDry) await decide(who, "approve", incident, action);
    const plan = await inTurn(async () => {
      const found = await allowed(order, config, env);
      if ("refused" in found) return await refuse(order, found.refused);
      if (isDry) return found;
      try {
        await write(who, "run", incident.id, action.id, found.words);
        begun.push({ incident: incident.id, atMs: env.nowMs() });
        await env.put(incident.id, changed(action, { state: "running", outcome: "" }));
      } catch (error) {
        return await refuse(
          order,
          `not run, for it could not be written down: ${messageOf(error)}`,
        );
      }
      if (started.size >= MOST_STARTED) started.delete(started.keys().next().value!);
      started.set(key, false);
      remember(incident, action);
      return found;
    });
    if (isDry) return await rehearse(order, plan.words);
    const result = await carriedOut(plan.run, env);
    if (result.state === "done") started.set(key, true);
    else if (!result.outcome.startsWith(UNKNOWN) && result.canUndo !== true)
      forget(incident, action);
    return await finish(order, result);
  }

  async function rehearse({ incident, action, who }: Order, would: string): Promise<Incident> {
    try {
      await write(who, "dry-run", incident.id, action.id, `would ${would}`);
    } catch (error) {
      throw new Refusal(409, `not run: ${messageOf(error)}`);
    }
    // A rehearsal does not undo what is known of a failure.
    const isKept = action.state === "failed" || action.state === "undone";
    const dry = { state: "dry-run", outcome: "", changedMs: env.nowMs() } as const;
    return await env.put(incident.id, { ...action, ...(isKept ? {} : dry), would });
  }

  async function undo(order: Order): Promise<Incident> {
    const { incident, action, who, isDry } = order;
    if (action.canUndo !== true || !["done", "failed"].includes(action.state))
      throw new Refusal(409, "there is nothing of it that can be undone");
    const plan = planFor(action, incident, config);
    if ("refused" in plan) return await refuse(order, plan.refused);
    const { undo: back } = plan;
    if (!back) return await refuse(order, "what does it now cannot undo it");
    if (isDry) {
      await write(who, "dry-run", incident.id, action.id, `undo: would ${back.words}`).catch(() => {
        throw new Refusal(503, "the audit trail cannot be written at the moment");
      });
      const shown = { ...action, would: back.words };
      const actions = incident.actions.map((one) => (one.id === action.id ? shown : one));
      return { ...incident, actions };
    }
    try {
      await write(who, "undo", incident.id, action.id, back.words);
      await env.put(incident.id, changed(action, { state: "undoing" }));
    } catch (error) {
      return await refuse(
        order,
        `not undone, for it could not be written down: ${messageOf(error)}`,
      );
    }
    const result = await carriedOut(back.run, env);
    if (result.state !== "done")
      return await finish(order, {
        state: action.state,
        outcome: `it could not be undone: ${result.outcome}`,
        canUndo: true,
      });
    started.delete(keyOf(incident, action.id));
    forget(incident, action);
    return await finish(order, { state: "undone", outcome: result.outcome });
  }

  /** The outcome in the audit trail, then in the record. */
  async function finish(
    { incident, action, who }: Order,
    result: Pick<IncidentAction, "state" | "outcome" | "canUndo">,
  ): Promise<Incident> {
    const isWritten = await write(who, "outcome", incident.id, action.id, result.outcome).then(
      () => true,
      () => false,
    );
    const remark = isWritten ? "" : " (not in the audit trail, which could not be written)";
    const outcome = `${result.outcome}${remark}`;
    return await env.put(incident.id, changed(action, { ...result, outcome }));
  }

  /** canUndo is there only where the change says so; what would have been done is past. */
  function changed(
    { canUndo: _before, would: _would, ...action }: IncidentAction,
    change: Pick<IncidentAction, "state"> & Partial<IncidentAction>,
  ): IncidentAction {
    return { ...action, ...change, changedMs: env.nowMs() };
  }

  function remember({ job }: Incident, { do: word, data }: IncidentAction): void {
    const { machine } = data as { machine?: unknown };
    if (!TAKE_OUT.includes(word) || typeof machine !== "string") return;
    const atMs = env.nowMs();
    recent = [...recent.filter((one) => atMs - one.atMs < DAY_MS), { job, machine, atMs }];
  }

  function forget({ job }: Incident, { data }: IncidentAction): void {
    const { machine } = data as { machine?: unknown };
    const at = recent.findLastIndex((one) => one.job === job && one.machine === machine);
    if (at >= 0) recent = recent.filter((_, i) => i !== at);
  }

  /** What the driver sees of an action that was under way when the service died. */
  async function settled(incident: Incident, action: IncidentAction) {
    const plan = planFor(action, incident, config);
    const stopped = `the service stopped while it was ${action.state}`;
    const isUndoing = action.state === "undoing";
    if ("refused" in plan || !plan.settle || action.state === "approved") {
      const outcome = `${UNKNOWN}${stopped}; it is not ${isUndoing ? "undone" : "run"} again by itself`;
      return isUndoing
        ? { state: "done" as const, outcome, canUndo: true }
        : { state: "failed" as const, outcome };
    }
    const { settle } = plan;
    const seen = await carriedOut(settle, env);
    const words = `${seen.outcome} (${stopped})`;
    if (!isUndoing) return { ...seen, outcome: words };
    const isBack = seen.state === "failed" && !seen.outcome.startsWith(UNKNOWN);
    return isBack
      ? { state: "undone" as const, outcome: words }
      : { state: "done" as const, outcome: words, canUndo: true };
  }

  async function runAutomatic(incident: Incident, isChosen: (key: string) => boolean) {
    if (config.approval !== "automatic") return;
    if (incident.state !== "confirmed" && incident.state !== "relapsed") return;
    const least = config.leastConfidence ?? LEAST_CONFIDENCE;
    if ((incident.verdict?.confidence ?? 0) < least) return;
    for (const action of incident.actions) {
      const key = keyOf(incident, action.id);
      const isOpen = action.state === "proposed" || (action.state === "dry-run" && !config.dryRun);
      if (!isOpen || !action.canRun || !isChosen(key)) continue;
      const later = (ms: number): void => {
        waiting.delete(key);
        waiting.set(key, env.nowMs() + ms);
        // The oldest is of an incident that ended meanwhile: nobody looks at it again.
        if (waiting.size > MOST_STARTED) waiting.delete(waiting.keys().next().value!);
      };
      if (!isDue(incident, action, env.lostMs(incident))) {
        later(0);
        continue;
      }
      waiting.delete(key);
      try {
        const order = { incident, action, who: SERVICE, isDry: config.dryRun };
        const found = await allowed(order, config, env);
        // Refused for the same reason as before: nothing to write down.
        if ("refused" in found && action.outcome === refusalWords(found.refused))
          later(TRY_AGAIN_MS);
        else await act(incident, action.id, "approve", SERVICE, false);
      } catch (error) {
        later(TRY_AGAIN_MS);
        const why = errorText(error);
        env.log(`actions: ${action.id} of ${harmless(incident.id)} was not run: ${harmless(why)}`);
      }
    }
  }

  return {
    propose,
    act,
    runAutomatic: (incident) => runAutomatic(incident, () => true),
    runDue: (incident) =>
      runAutomatic(incident, (key) => (waiting.get(key) ?? Infinity) <= env.nowMs()),
    async recover(incident) {
      let latest = incident;
      for (const action of incident.actions) {
        if (!["running", "approved", "undoing"].includes(action.state)) continue;
        const result = await settled(incident, action);
        await write(SERVICE, "recover", incident.id, action.id, result.outcome).catch(
          () => undefined,
        );
        latest = await env.put(incident.id, changed(action, result));
      }
      return latest;
    },
  };
}
