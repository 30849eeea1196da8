/**
 * What the judge says of a running job: whom it names is to be explained (explain-steps.ts), what it takes back is withdrawn, what is
 * over is fixed. Where nothing is judged the pace decides (docs/incidents.md).
 */
import { thousands } from "../../../base/text.ts";
import type { Incident, IncidentEnding } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import { culpritWords, ended } from "../incident/incident-lifecycle.ts";
import { enqueue, store, type Turn } from "../incident/incident-book.ts";
import type { EventOf } from "../job/job-events.ts";
import { type JobState, type NamedCulprit, openSlowdowns } from "../job/job-state.ts";
import { unheardOf } from "../job/partial-view.ts";
import { isSlowOne, slowdownOf } from "./culprit-slowdown.ts";
import { forgetResting, rest, restedLong, wake } from "./resting.ts";

/** The judge speaks every half second, or after each iteration: when it has said nothing for so long, nothing is judged. */
const JUDGED_MS = 15_000;
const JUDGED_ITERATIONS = 3;
/** A revised word is told if it is surer by so much, or says something else, and not more often: people act on each. */
export const SURER = 0.1;
const REVISED_MS = 5000;
/** Wires are looked at so often, until one device explains a slow network. */
const LOOKS_ON_WIRE = 4;
/** Up to this much of the healthy pace, a job is at it again. */
const USUAL = 1.05;
/** The pace, among those whom the judge names. */
export const PACE = "pace";

type State = Turn["state"];

const NEWLY_NAMED = { incident: null, explained: null, isOnWire: false };

export function onJudged(turn: Turn, event: EventOf<"judged">): void {
  const { state, nowMs } = turn;
  const { session, judgement } = event;
  if (event.run !== state.run?.run) return;
  state.session = session;
  state.judgedMs = nowMs;
  // Of incidents that an earlier service opened this judge does not know what was healthy before.
  const isHealthy = judgement.state === "healthy" && openSlowdowns(state).length === 0;
  if (isHealthy) state.pace.accept(nowMs);
  const keyOf = ({ id }: { readonly id: number }): string => `${session}:${id}`;
  const wrong = judgement.ended.filter(({ why }) => why === "revised").map(keyOf);
  for (const one of judgement.ended) if (one.why === "over") over(turn, keyOf(one), one.untilMs);
  for (const culprit of judgement.culprits) name(turn, keyOf(culprit), culprit);
  // Behind whoever is named instead.
  for (const key of wrong) {
    const id = state.culprits.get(key)?.incident;
    forget(state, key);
    if (id) enqueue(state, { step: "withdraw", id });
  }
}

/** Whether somebody judges this job. */
function isJudged({ judgedMs, run }: JobState, nowMs: number): boolean {
  return nowMs - judgedMs <= Math.max(JUDGED_MS, JUDGED_ITERATIONS * (run?.levelMs || 0));
}

function name(turn: Turn, key: string, culprit: LiveCulprit | null): void {
  const { state, nowMs } = turn;
  const known = state.culprits.get(key) ?? {
    ...NEWLY_NAMED,
    incident: culprit && wake(state, culprit),
  };
  const { iterations } = state.run!;
  // Of a job whose iterations nobody knows, nobody waits for them.
  const isPaced =
    known.explained?.isPaced === true ||
    culprit === null ||
    iterations.count === 0 ||
    slowdownOf(culprit, iterations, null).isPaced;
  const isNews = saysSomethingNew({ ...known, culprit }, isPaced, nowMs);
  const times = (known.explained?.times ?? 0) + 1;
  const explained = isNews ? { culprit, isPaced, times, atMs: nowMs } : known.explained;
  state.culprits = new Map(state.culprits).set(key, { ...known, culprit, explained });
  if (isNews) enqueue(state, { step: "explain", key });
}

function saysSomethingNew(
  { culprit, incident, explained, isOnWire }: NamedCulprit,
  isPaced: boolean,
  nowMs: number,
): boolean {
  // Which wire it is, only slow iterations tell.
  const mayBeWire = culprit?.type === "wire" || culprit?.type === "all";
  if (mayBeWire && !isPaced) return false;
  if (!explained || (isPaced && !explained.isPaced)) return true;
  if (nowMs - explained.atMs < REVISED_MS) return false;
  const before = explained.culprit;
  // There was no room for another incident, or its agent was not heard: there may be by now.
  if (incident === null) return true;
  if (!culprit || !before) return false;
  if (mayBeWire && !isOnWire && explained.times < LOOKS_ON_WIRE) return true;
  const surenessOf = (one: LiveCulprit): number => one.probability * one.causeProbability;
  return (
    // That its cause is open again is no news.
    (culprit.cause !== null && culprit.cause !== before.cause) ||
    culprit.shape !== before.shape ||
    culprit.ranks.join() !== before.ranks.join() ||
    surenessOf(culprit) >= surenessOf(before) + SURER
  );
}

/** The judge names it no longer: it is as fast as before (rule 5). */
function over(turn: Turn, key: string, endedMs: number): void {
  const { state } = turn;
  const named = state.culprits.get(key);
  forget(state, key);
  if (!named?.incident) return;
  const id = named.incident;
  // Named by another number as well, which lasts.
  if ([...state.culprits].some(([other, one]) => other !== PACE && one.incident === id)) return;
  const incident = openSlowdowns(state).find((one) => one.id === id);
  if (!incident) return;
  if (named.culprit && rest(state, incident, named.culprit, endedMs)) return;
  resolve(turn, incident, endingOf(incident));
}

/** Rested for long (rule 6). */
export function endRested(turn: Turn): void {
  for (const one of restedLong(turn)) resolve(turn, one, endingOf(one));
}

function endingOf({ ranks }: Incident): IncidentEnding {
  return ranks.length > 0 ? "fixed" : "passed";
}

/** Whether its end is among the steps whose turn comes. */
export function isEnding({ steps }: JobState, { id }: Incident): boolean {
  return steps.some((one) => one.step === "resolve-one" && one.id === id);
}

export function resolve(turn: Turn, { id }: Incident, ending: IncidentEnding): void {
  const { state } = turn;
  const others = openSlowdowns(state).filter((one) => one.id !== id && !isEnding(state, one));
  const nowMs = state.run?.iterations.lastMs ?? NaN;
  const pace = `iterations take ${thousands(Math.round(nowMs))} ms`;
  const isUsual = state.baselineMs === null || nowMs <= USUAL * state.baselineMs;
  const says =
    others.length > 0 ? `others are still slow, and ${pace}` : `${pace}${isUsual ? " again" : ""}`;
  enqueue(state, { step: "resolve-one", id, ending, says: `${ending}; ${says}` });
  forgetResting(state, id);
  for (const [key, { incident }] of state.culprits) if (incident === id) forget(state, key);
  if (others.length === 0 && state.baselineMs !== null)
    state.run?.iterations.calm(state.baselineMs);
}

function forget(state: State, key: string): void {
  state.culprits = new Map([...state.culprits].filter(([other]) => other !== key));
}

/** Micro-batches are shared out otherwise: what the judge said of them as they were is over. */
export function forgetUneven(state: State): void {
  state.culprits = new Map([...state.culprits].filter(([key]) => !key.startsWith("-")));
}

/** Whoever was accused was not slow: somebody else is, or nobody. */
export function withdraw(turn: Turn, id: string): void {
  const { state, nowMs } = turn;
  const open = openSlowdowns(state);
  const wrong = open.find((one) => one.id === id);
  if (!wrong) return;
  if ([...state.culprits.values()].some(({ incident }) => incident === id)) return;
  const named = new Set([...state.culprits.values()].map(({ incident }) => incident));
  const other = open.find((one) => one.id !== id && named.has(one.id));
  const [suspect] = other?.verdict?.suspects ?? [];
  const instead = suspect
    ? `later evidence of the same iterations accuses ${culpritWords(suspect)} (incident ${other!.id})`
    : "later evidence does not bear it out";
  store(turn, "slow", ended(wrong, nowMs, "withdrawn", `withdrawn; ${instead}`), null);
}

/** Iterations take longer, and nothing is judged, or not everybody: somebody is slow, nobody knows who (rule 12). */
export function onSlower(turn: Turn): void {
  const { state, nowMs } = turn;
  const isWhole = unheardOf(state.run!, null, nowMs).ranks.length === 0;
  if (!isWhole || !isJudged(state, nowMs)) name(turn, PACE, null);
}

/** The pace is back: what nobody judges is over. */
export function onBack(turn: Turn): void {
  const { state, nowMs } = turn;
  forget(state, PACE);
  const named = [...state.culprits].filter(([key]) => key.startsWith(`${state.session}:`));
  const judged = new Set(
    isJudged(state, nowMs)
      ? [...named.map(([, { incident }]) => incident), ...state.resting.keys()]
      : [],
  );
  for (const one of openSlowdowns(state).reverse())
    if (!judged.has(one.id) && !state.relieved?.incidents.has(one.id)) resolve(turn, one, "passed");
}

/** GPU-milliseconds that an iteration cost beyond the usual, where that is the open slowdown's doing. */
export function lostIn({ slow, baselineMs }: JobState, durationMs: number): number {
  if (!slow || baselineMs === null) return 0;
  if (slow.intermittent && !isSlowOne(durationMs, baselineMs)) return 0;
  return Math.max(0, durationMs - baselineMs);
}
