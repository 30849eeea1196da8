/**
 * What the judge says of a running job becomes incidents: whom it names is explained and accused, what it takes back is
 * withdrawn, what is over is fixed. Where nothing is judged the pace decides (docs/incidents.md).
 */
import { thousands } from "../../../base/text.ts";
import { factOf } from "../../../model/facts.ts";
import type { Incident, IncidentEnding } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { Verdict } from "../../../model/verdict.ts";
import {
  accusesSame,
  beganWith,
  culpritWords,
  isAbout,
  isOfNetwork,
  isSameLinkBetween,
} from "../incident/incident-lifecycle.ts";
import { confirm, enqueue, type Turn } from "../incident/incident-book.ts";
import type { EventOf } from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";
import { type JobState, type NamedCulprit, openSlowdowns } from "../job/job-state.ts";
import { unheardOf, withUnheard } from "../job/partial-view.ts";
import { accuseAnother, type Found, validateLater } from "./accuse.ts";
import { isSlowOne, slowdownOf } from "./culprit-slowdown.ts";
import { LEAST_RISE } from "./pace-watch.ts";
import { forgetResting, rest, restedLong, wake } from "./resting.ts";

/** The judge speaks every half second, or after each iteration: when it has said nothing for so long, nothing is judged. */
const JUDGED_MS = 15_000;
const JUDGED_ITERATIONS = 3;
/** A revised word is told if it is surer by so much, or says something else, and not more often: people act on each. */
const SURER = 0.1;
const REVISED_MS = 5000;
/** Wires are looked at so often, until one device explains a slow network. */
const LOOKS_ON_WIRE = 4;
/** Up to this much of the healthy pace, a job is at it again. */
const USUAL = 1.05;
/** The pace, among those whom the judge names. */
const PACE = "pace";

type State = Turn["state"];

const NEWLY_NAMED = { incident: null, explained: null, isOneDevice: false };

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
  const isPaced =
    known.explained?.isPaced === true ||
    culprit === null ||
    slowdownOf(culprit, state.run!.iterations, null).isPaced;
  const isNews = saysSomethingNew({ ...known, culprit }, isPaced, nowMs);
  const times = (known.explained?.times ?? 0) + 1;
  const explained = isNews ? { culprit, isPaced, times, atMs: nowMs } : known.explained;
  state.culprits = new Map(state.culprits).set(key, { ...known, culprit, explained });
  if (isNews) enqueue(state, { step: "explain", key });
}

function saysSomethingNew(
  { culprit, incident, explained, isOneDevice }: NamedCulprit,
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
  if (mayBeWire && !isOneDevice && explained.times < LOOKS_ON_WIRE) return true;
  const surenessOf = (one: LiveCulprit): number => one.probability * one.causeProbability;
  return (
    // That its cause is open again is no news.
    (culprit.cause !== null && culprit.cause !== before.cause) ||
    culprit.shape !== before.shape ||
    culprit.ranks.join() !== before.ranks.join() ||
    surenessOf(culprit) >= surenessOf(before) + SURER
  );
}

/** Its turn has come: it may be over by now. */
export function explain(turn: Turn, key: string): void {
  const { state, nowMs, decisions } = turn;
  const { run } = state;
  const named = state.culprits.get(key);
  if (!run || !named) return;
  const others = openSlowdowns(state).filter(({ id }) => id !== named.incident);
  const usualMs = others.length > 0 ? state.baselineMs : null;
  const { culprit, incident } = named;
  const paced = state.pace.slowdown;
  if (!culprit && !paced) return;
  const stretch = culprit && sinceFirst(state, culprit, incident);
  const slowdown = stretch ? slowdownOf(stretch, run.iterations, usualMs) : paced!;
  decisions.push({
    do: "explain",
    run,
    key,
    culprit,
    slowdown,
    isAgain: incident !== null,
    accused: new Set(others.flatMap(({ ranks }) => ranks)),
    usualMs: usualMs ?? slowdown.beforeMs,
    unheard: unheardOf(run, null, nowMs),
  });
  state.isBusy = true;
}

/** Of one that has rested: all of its stretches. */
function sinceFirst(
  state: State,
  culprit: LiveCulprit,
  incident: string | null,
): Pick<LiveCulprit, "sinceMs" | "shape"> {
  const known = openSlowdowns(state).find(({ id }) => id === incident);
  if (!known || !state.resting.has(known.id)) return culprit;
  return { sinceMs: Math.min(known.onsetMs, culprit.sinceMs), shape: "now-and-then" };
}

export function onExplained(turn: Turn, { explain: asked, diagnosis }: EventOf<"explained">): void {
  const { state } = turn;
  state.isBusy = false;
  const { key, run, slowdown, unheard, culprit } = asked;
  const named = state.culprits.get(key);
  // It was over before anybody was told (rule 6).
  if (!named || run !== state.run) return;
  const verdict = withUnheard(diagnosis.verdict, unheard);
  const open = openSlowdowns(state);
  const names = verdict.suspects.length > 0;
  // That nobody leads is told only where it costs something.
  const isSlower = slowdown.afterMs > LEAST_RISE * slowdown.beforeMs;
  const mayBeNobody = isSlower && (culprit === null || culprit.type === "all");
  if (!names && (!mayBeNobody || open.some((one) => one.verdict !== null))) return;
  // The code is slower since then: whoever is slow runs it.
  const isOfCode = (one: Incident): boolean =>
    one.kind === "regression" && beganWith({ onsetMs: slowdown.fromMs }, one.onsetMs);
  if (open.some(isOfCode)) return;
  const found = { run, slowdown, diagnosis: { ...diagnosis, verdict } };
  const known = incidentOf(state, key, verdict, run);
  if (!known) for (const one of restedLong(turn, true)) resolve(turn, one, "fixed");
  const id = known ? sayMore(turn, known, found) : accuseAnother(turn, found);
  const { isOneDevice = false } = diagnosis;
  state.culprits = new Map(state.culprits).set(key, { ...named, incident: id, isOneDevice });
  // Two ends of one link were accused by themselves at first.
  if (named.incident !== null && named.incident !== id)
    enqueue(state, { step: "withdraw", id: named.incident });
}

/** The open incident that is about the culprit; none that is about another whom the judge names, unless it is the same wire. */
function incidentOf(
  state: State,
  key: string,
  verdict: Verdict,
  run: JobRun,
): Incident | undefined {
  const others = [...state.culprits].filter(([other]) => other !== key && other !== PACE);
  const taken = new Set(others.map(([, { incident }]) => incident));
  const own = state.culprits.get(key)!.incident;
  const free = openSlowdowns(state).filter(({ id }) => !taken.has(id));
  const [suspect] = verdict.suspects;
  const isWire = suspect !== undefined && isOfNetwork(suspect);
  return (
    (isWire ? openSlowdowns(state).find((one) => accusesSame(one.verdict, verdict)) : undefined) ??
    free.find(({ id }) => id === own) ??
    free.find((one) => accusesSame(one.verdict, verdict)) ??
    free.find((one) => isAbout(one, verdict, true)) ??
    free.find((one) => isSameLinkBetween(run.ranks, one.verdict, verdict))
  );
}

function sayMore(turn: Turn, known: Incident, { run, slowdown, diagnosis }: Found): string {
  const { state, nowMs: atMs } = turn;
  const { id } = known;
  // What tests found out, the judge does not take back.
  if (known.validation?.isNamed && isAbout(known, diagnosis.verdict, false)) return id;
  if (known.verdict && addsNothing(known.verdict, diagnosis.verdict)) return id;
  validateLater(state, run, diagnosis, slowdown);
  confirm(turn, { step: "confirm", which: "slow", id, diagnosis, slowdown, atMs });
  return id;
}

/** A second verdict that names the same suspects, no surer, and knows no more of the job's pace. */
function addsNothing(first: Verdict, second: Verdict): boolean {
  const paceOf = ({ findings }: Verdict): string => {
    const pace = findings.map((one) => factOf(one, "slow-down")).find((one) => one !== null);
    return pace ? (pace.intermittent ? "now and then" : "lasting") : "unknown";
  };
  const keyOf = ({ suspects }: Verdict): string =>
    suspects.map(({ type, cause, ranks }) => `${type} ${cause} ${ranks.join()}`).join(";");
  const pace = paceOf(second);
  if (pace !== "unknown" && pace !== paceOf(first)) return false;
  return keyOf(first) === keyOf(second) && second.confidence < first.confidence + SURER;
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

function resolve(turn: Turn, { id }: Incident, ending: IncidentEnding): void {
  const { state } = turn;
  const { steps } = state;
  const isDue = (one: Incident): boolean =>
    steps.some((step) => step.step === "resolve-one" && step.id === one.id);
  const others = openSlowdowns(state).filter((one) => one.id !== id && !isDue(one));
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
export function withdraw({ state }: Turn, id: string): void {
  const open = openSlowdowns(state);
  if (!open.some((one) => one.id === id)) return;
  if ([...state.culprits.values()].some(({ incident }) => incident === id)) return;
  const named = new Set([...state.culprits.values()].map(({ incident }) => incident));
  const other = open.find((one) => one.id !== id && named.has(one.id));
  const [suspect] = other?.verdict?.suspects ?? [];
  const instead = suspect
    ? `later evidence of the same iterations accuses ${culpritWords(suspect)} (incident ${other!.id})`
    : "later evidence does not bear it out";
  const says = `withdrawn; ${instead}`;
  enqueue(state, { step: "resolve-one", id, ending: "withdrawn", says });
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
