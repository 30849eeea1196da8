/** How a job's incidents change, one step after the other: a step waits while the decision before it is carried out. */
import { intermittentWords } from "../../../base/text.ts";
import { spread } from "../../../maths/robust.ts";
import { factOf } from "../../../model/facts.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Incident } from "../../../model/incident.ts";
import type { Verdict } from "../../../model/verdict.ts";
import { culpritLevel, healthyTimes, slowSince } from "../slowdown/culprit-level.ts";
import {
  accusesSame,
  beganWith,
  confirmed,
  culpritWords,
  ended,
  isAbout,
  isOfNetwork,
  isOpen,
  relapsed,
  suspected,
  validated,
  withIntermittent,
  withWaste,
  withoutVictims,
} from "./incident-lifecycle.ts";
import type {
  CollectDecision,
  Diagnosis,
  EventOf,
  JobDecision,
  JobStep,
  SaveDecision,
} from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";
import { type JobState, openSlowdowns, withWasteNow } from "../job/job-state.ts";
import {
  ranksUnheard,
  unheardOf,
  unheardWords,
  withLastReports,
  withUnheard,
} from "../job/partial-view.ts";
import type { SuspectedSlowdown } from "../slowdown/slowdown-detector.ts";
import { explainedPause, provesStandstill } from "../standstill/standstill-proof.ts";
import { standstillVerdict } from "../standstill/standstill-verdict.ts";

/** Sure enough to name a suspect before all attempts are spent; after so many slow iterations; with the last attempt, or to test. */
const SURE = 0.5;
const SURE_LATER = 0.4;
const SURE_LAST = 0.3;
const PATIENT = 5;
/** A second verdict that is surer by less says nothing new. */
const SURER = 0.1;
const MOST_EARLIER = 12;
/** A network beside the culprit of the same iterations takes longer by so many deviations of a healthy iteration, or it is noise. */
const NETWORK_SIGMAS = 3;
/** Iterations by which what began together is dated apart. */
const SAME_START = 2;
/** Slowdowns of a job that are open at once. */
const MOST_OPEN = 8;

/** One event being reduced. */
export interface Turn {
  readonly state: { -readonly [K in keyof JobState]: JobState[K] };
  readonly nowMs: number;
  readonly decisions: JobDecision[];
}

/** Performs the steps whose turn has come. */
export function advance(turn: Turn): void {
  const { state } = turn;
  while (!state.isBusy && state.steps.length > 0) {
    const [first, ...rest] = state.steps;
    state.steps = rest;
    perform(turn, first!);
  }
}

/** The slowdowns of this run that were resolved a short while ago, the last first. */
export function recentSlowdowns({ state, nowMs }: Turn): Incident[] {
  const { recent, earlier, run, options } = state;
  return [...(recent ? [recent] : []), ...earlier].filter(
    (one) =>
      one.kind === "fail-slow" &&
      one.run === run?.run &&
      one.ending !== "withdrawn" &&
      nowMs - (one.resolvedMs ?? -Infinity) < options.relapseMs,
  );
}

/** A stretch that is over may have become the first of several while it was searched. */
function isSameStretch(now: SuspectedSlowdown, searched: SuspectedSlowdown): boolean {
  const areLasting = [now, searched].map(({ intermittent }) => intermittent === undefined);
  return now.slowFrom === searched.slowFrom && areLasting[0] === areLasting[1];
}

export function onLocalized(turn: Turn, { search, diagnosis }: EventOf<"localized">): void {
  const { state } = turn;
  state.isBusy = false;
  const { run, slow: slowIterations, isAgain, isLast } = search;
  const now = state.slowdowns.suspicion;
  if (!diagnosis || !now || !isSameStretch(now, search.suspicion) || !state.slowdowns.lasts) return;
  const { slowdown = search.suspicion } = diagnosis;
  const verdict = withUnheard(diagnosis.verdict, search.unheard);
  const isFinal = isLast && !now.isTentative;
  // What is not singled out yet is said with less certainty, and tests single it out.
  const least =
    isFinal || diagnosis.tests ? SURE_LAST : slowIterations >= PATIENT ? SURE_LATER : SURE;
  const isSure = verdict.suspects.length > 0 && verdict.confidence >= least;
  // A later search that finds no suspect takes nothing back.
  if (isAgain && !isSure) {
    if (slowdown.intermittent) state.slowdowns.miss();
    return;
  }
  if (!isSure && !isFinal) return;
  if (!isAgain && isOfThePast(search.suspicion, slowdown)) return;
  state.slowdowns.settle();
  const open = openSlowdowns(state);
  if (!isSure && open.some((one) => one.verdict !== null)) return;
  // The code is slower since then: whom the search finds slow runs it.
  if (
    open.some(
      (one) => one.kind === "regression" && beganWith({ onsetMs: slowdown.fromMs }, one.onsetMs),
    )
  )
    return;
  const isOfStretch = (one: Incident): boolean => one.fromIteration === slowdown.slowFrom;
  const known =
    open.find((one) => accusesSame(one.verdict, verdict)) ??
    open.find((one) => isAbout(one, verdict, isOfStretch(one))) ??
    open.find((one) => isSameLink(run, one.verdict, verdict));
  const found = { run, slowdown, diagnosis: { ...diagnosis, verdict } };
  if (known) sayMore(turn, known, found);
  else if (open.some((one) => one.verdict && isOfStretch(one)) && isNoiseOf(state, verdict)) return;
  else accuseAnother(turn, found);
}

/** Whether a slow network costs no more than iterations vary: whoever is slow makes them vary more. */
function isNoiseOf({ slowdowns: { healthy } }: JobState, { findings, suspects }: Verdict): boolean {
  const cited = findings.find(({ id }) => suspects[0]?.evidence.includes(id));
  const growthMs = cited && factOf(cited, "slow-device")?.growthMs;
  return growthMs !== undefined && growthMs < NETWORK_SIGMAS * spread(healthy);
}

/** Of an intermittent slowdown: whether the culprit has no part in the last slow iteration, which somebody else caused. */
function isOfThePast(searched: SuspectedSlowdown, { intermittent }: SuspectedSlowdown): boolean {
  const last = searched.intermittent?.slow.at(-1);
  return last !== undefined && intermittent?.slow.includes(last) === false;
}

/** What a search came to. */
interface Found {
  readonly run: JobRun;
  readonly slowdown: SuspectedSlowdown;
  readonly diagnosis: Diagnosis;
}

/** The verdict is about the culprit of an open incident. */
function sayMore(turn: Turn, known: Incident, { run, slowdown, diagnosis }: Found): void {
  const { state, nowMs: atMs } = turn;
  const { verdict } = diagnosis;
  measure(state, known, slowdown);
  // Which of the ranks' connections between two machines is the slowest changes from search to search.
  if (isSameLink(run, known.verdict, verdict)) return;
  // Its picture would say less, too: the healthy iterations to compare with get out of reach as it lasts.
  const isSameKind = Boolean(known.intermittent) === Boolean(slowdown.intermittent);
  if (isSameKind && known.verdict && addsNothing(known.verdict, verdict)) return;
  // What tests found out, a search that ends in the same group does not take back.
  if (known.validation?.isNamed && isAbout(known, verdict, false)) return;
  if (known.id === state.slow?.id) validateLater(state, run, diagnosis, slowdown);
  perform(turn, { step: "confirm", which: "slow", id: known.id, diagnosis, slowdown, atMs });
}

/** The slowdown of somebody beside a known culprit, since its own time shows it: the search may begin with the first one's. */
function ofAnother(
  { healthy }: JobState,
  { run, slowdown, diagnosis: { verdict } }: Found,
): SuspectedSlowdown {
  const { slowFrom, intermittent } = slowdown;
  const [first] = verdict.suspects;
  if (!first || isOfNetwork(first) || intermittent) return slowdown;
  const level = culpritLevel(run, first, slowFrom, healthy);
  const since = level?.isUp ? slowSince(run, first, level) : NaN;
  if (!(since > slowFrom + SAME_START)) return slowdown;
  return { ...slowdown, slowFrom: since, fromMs: run.startMs(since) };
}

/** The verdict accuses somebody whom no open incident accuses. */
function accuseAnother(turn: Turn, found: Found): void {
  const { state, nowMs: atMs } = turn;
  const { run, diagnosis } = found;
  const { verdict } = diagnosis;
  const open = openSlowdowns(state);
  const slowdown = open.length > 0 ? ofAnother(state, found) : found.slowdown;
  if (open.length >= MOST_OPEN) return;
  validateLater(state, run, diagnosis, slowdown);
  const old = recentSlowdowns(turn).find(
    (one) => accusesSame(one.verdict, verdict) || isSameLink(run, one.verdict, verdict),
  );
  const isFirst = open.length === 0;
  const first = old ?? suspectedSlowdown(turn, run, slowdown);
  if (!isFirst) {
    withdrawWrong(state, first, verdict, slowdown);
    state.besides = open;
    state.slow = null;
  }
  // What is lost while several are slow counts once: so far it was counted for those before.
  const lost = isFirst ? lostSince(state, run, slowdown) : 0;
  if (!old) {
    const confirm: JobStep = {
      step: "confirm",
      which: "slow",
      id: first.id,
      diagnosis,
      slowdown,
      atMs,
    };
    store(turn, "slow", withWaste(first, lost), confirm);
    return;
  }
  // What it lost the first time is part of it again.
  state.wastedBefore = Math.max(0, state.wastedBefore - old.wastedGpuMs);
  const rest = [state.recent, ...state.earlier].filter((one) => one !== null && one.id !== old.id);
  [state.recent = null, ...state.earlier] = rest as Incident[];
  const clean = withoutVictims(verdict, accusedBeside(state, old.id));
  const again = relapsed(old, clean, slowdown.slowFrom, atMs);
  measure(state, again, slowdown);
  clearOthers(state, again);
  const record = withIntermittent(withWaste(again, old.wastedGpuMs + lost), slowdown);
  store(turn, "slow", record, publish(again, { ...diagnosis, verdict: clean }));
}

/** Whether two verdicts accuse connections of different ranks between the same two machines. */
function isSameLink({ ranks }: JobRun, a: Verdict | null, b: Verdict): boolean {
  const [first, second] = [a, b].map((verdict) => {
    const [suspect] = verdict?.suspects ?? [];
    if (suspect?.type !== "link") return null;
    const machines = new Set(suspect.ranks.map((rank) => ranks.get(rank)?.machine));
    return machines.size === 2 ? { suspect, machines } : null;
  });
  if (!first || !second) return false;
  for (const machine of first.machines) if (!second.machines.has(machine)) return false;
  return !first.suspect.ranks.every((rank) => second.suspect.ranks.includes(rank));
}

function validateLater(
  state: Turn["state"],
  run: JobRun,
  { tests }: Diagnosis,
  { beforeMs, afterMs, intermittent }: SuspectedSlowdown,
): void {
  // Most iterations take as long as ever where it is slow now and then.
  const iterationMs = intermittent ? beforeMs : afterMs;
  if (tests) enqueue(state, { step: "validate", run, tests, iterationMs });
}

/** Open incidents of these very iterations whose culprit was never slow by itself: it was somebody else. */
function withdrawWrong(
  state: Turn["state"],
  { id: other }: Incident,
  { suspects }: Verdict,
  { slowFrom }: SuspectedSlowdown,
): void {
  for (const { id, fromIteration, verdict } of openSlowdowns(state)) {
    const [first] = verdict?.suspects ?? [];
    const level = state.levels.get(id);
    if (!first || isOfNetwork(first) || fromIteration !== slowFrom || !level || level.isUp)
      continue;
    const says = `withdrawn; later evidence of the same iterations accuses ${culpritWords(suspects[0]!)} (incident ${other})`;
    enqueue(state, { step: "resolve-one", id, ending: "withdrawn", says });
  }
}

/** Ranks that open incidents beside this one accuse. */
function accusedBeside(state: JobState, id: string): Set<Rank> {
  const others = openSlowdowns(state).filter((one) => one.id !== id);
  return new Set(others.flatMap(({ ranks }) => ranks));
}

/** Who is accused does not only wait in the eyes of the incidents beside it. */
function clearOthers(state: Turn["state"], accuser: Incident): void {
  const accused = new Set(accuser.ranks);
  for (const { id, verdict } of openSlowdowns(state))
    if (id !== accuser.id && verdict && withoutVictims(verdict, accused) !== verdict)
      enqueue(state, { step: "clear-victims", id, ranks: accused });
}

/** How slow its culprit is by itself, so that it is seen when it is no longer. */
function measure(
  state: Turn["state"],
  { id, verdict }: Incident,
  { slowFrom, intermittent }: SuspectedSlowdown,
): void {
  const [first] = verdict?.suspects ?? [];
  if (!first || !state.run || intermittent || state.levels.get(id)?.isUp) return;
  state.healthy = healthyTimes(state.run, slowFrom, state.baselineMs ?? -Infinity, state.healthy);
  const level = culpritLevel(state.run, first, slowFrom, state.healthy);
  if (level) state.levels = new Map(state.levels).set(id, level);
}

/** A second verdict that names the same suspects, no surer. */
function addsNothing(first: Verdict, second: Verdict): boolean {
  const key = ({ suspects }: Verdict): string =>
    suspects.map(({ type, cause, ranks }) => `${type} ${cause} ${ranks.join()}`).join(";");
  return key(first) === key(second) && second.confidence < first.confidence + SURER;
}

/** GPU-milliseconds lost by the iterations that were slow before the slowdown was noticed. */
function lostSince({ healthySince }: JobState, run: JobRun, slowdown: SuspectedSlowdown): number {
  return run.lostMs(slowdown, healthySince) * run.gpus;
}

/** Whatever the evidence is good for, an incident is confirmed: nothing goes on. A suspicion needs proof. */
export function onCollected(turn: Turn, event: EventOf<"collected">): void {
  const { state, nowMs } = turn;
  state.isBusy = false;
  const { evidence } = event;
  const unheard = unheardOf(evidence.run, event.answered ?? null, nowMs);
  const diagnosis = event.diagnosis && {
    ...event.diagnosis,
    verdict: withUnheard(event.diagnosis.verdict, unheard),
  };
  const { run, id, kind, ranks, says } = evidence;
  const { suspicion } = state;
  if (suspicion?.incident.id === id) {
    state.suspicion = {
      ...suspicion,
      diagnosis: diagnosis ?? suspicion.diagnosis,
      isCollecting: false,
    };
    const pause = diagnosis && explainedPause(diagnosis.verdict);
    if (pause !== null) state.standstills.explain(pause);
    const isProven = diagnosis !== null && provesStandstill(diagnosis.verdict);
    if (!isProven && !suspicion.isCertain) return;
    state.suspicion = null;
    state.still = suspicion.incident;
    state.stillEpoch = run.epoch;
    state.standstills.proven();
  }
  // The job may have gone on meanwhile.
  if (state.still?.id !== id) return;
  const seen = diagnosis?.verdict ?? null;
  const stood = standstillVerdict(run, kind, ranks, says, seen, state.still.fromIteration);
  const missing = event.diagnosis?.verdict.missing ?? [];
  const verdict = stood === seen ? stood : withLastReports({ ...stood, missing }, run, unheard);
  const isOfEvidence = stood === seen && verdict.suspects.length > 0;
  const isPartial = !isOfEvidence && ranksUnheard(unheard) > 0;
  state.partialEvidence = isPartial ? { evidence, unheard, askedMs: nowMs } : null;
  // Evidence that says no more takes nothing back.
  const known = state.still.verdict;
  if (known && !isOfEvidence && (diagnosis === null || known.suspects.length > 0)) return;
  const found = diagnosis && { ...diagnosis, verdict };
  if (state.still === suspicion?.incident) {
    const confirm: JobStep = {
      step: "confirm",
      which: "still",
      diagnosis: found ?? { verdict },
      atMs: nowMs,
    };
    store(turn, "still", state.still, confirm);
    return;
  }
  const still = withWasteNow(state, "still", state.still, nowMs);
  store(turn, "still", confirmed(still, verdict, nowMs), found && publish(still, found));
}

/** Actions are saved at once: they follow from a record whose own step is still under way. */
export function onActions({ state, decisions }: Turn, { incident }: EventOf<"actions">): void {
  const { besides } = state;
  if (state.slow?.id === incident.id) state.slow = incident;
  else if (besides.some(({ id }) => id === incident.id))
    state.besides = besides.map((one) => (one.id === incident.id ? incident : one));
  else if (state.still?.id === incident.id) state.still = incident;
  else if (state.recent?.id === incident.id) state.recent = incident;
  else if (state.earlier.some(({ id }) => id === incident.id))
    state.earlier = state.earlier.map((one) => (one.id === incident.id ? incident : one));
  else return;
  decisions.push(saveDecision(state, incident, false, null));
}

export function onSaved({ state }: Turn, { save }: EventOf<"saved">): void {
  const { incident, shown, isStep, next } = save;
  // What follows from a record (its actions) may have been saved meanwhile.
  const { slow, still, recent, besides } = state.shown;
  const known = [slow, still, recent, ...besides].find((one) => one?.id === incident.id);
  if (!known || known.revision < incident.revision) state.shown = shown;
  if (!isStep) return;
  state.isBusy = false;
  if (next) state.steps = [next, ...state.steps];
}

function perform(turn: Turn, step: JobStep): void {
  const { state, nowMs, decisions } = turn;
  switch (step.step) {
    case "save":
      save(turn, step.incident, null);
      break;
    case "suspect":
      // It may be over by now.
      if (!state.slow && state.slowdowns.lasts) {
        const { run, slowdown } = step;
        const lost = lostSince(state, run, slowdown);
        store(turn, "slow", withWaste(suspectedSlowdown(turn, run, slowdown), lost), null);
      }
      break;
    case "confirm": {
      const { id, which, slowdown, atMs } = step;
      const now =
        id === undefined ? state[which] : openSlowdowns(state).find((one) => one.id === id);
      if (!now) break;
      const known = slowdown ? withIntermittent(now, slowdown) : now;
      const verdict =
        which === "slow"
          ? withoutVictims(step.diagnosis.verdict, accusedBeside(state, now.id))
          : step.diagnosis.verdict;
      const incident = confirmed(withWasteNow(state, which, known, nowMs), verdict, atMs);
      if (which === "slow") {
        if (slowdown) measure(state, incident, slowdown);
        clearOthers(state, incident);
      }
      store(turn, which, incident, publish(incident, { ...step.diagnosis, verdict }));
      break;
    }
    case "clear-victims": {
      const now = openSlowdowns(state).find((one) => one.id === step.id);
      if (!now?.verdict) break;
      const verdict = withoutVictims(now.verdict, step.ranks);
      store(turn, "slow", confirmed(now, verdict, nowMs), null);
      break;
    }
    case "resolve": {
      const { which, ending, says } = step;
      const incident = which === "slow" ? (state.besides.at(-1) ?? state.slow) : state.still;
      if (!incident) break;
      const isMore = which === "slow" && state.besides.length > 0;
      const now = withWasteNow(state, which, incident, nowMs);
      store(turn, which, ended(now, nowMs, ending, says), isMore ? step : null);
      break;
    }
    case "resolve-one": {
      const now = openSlowdowns(state).find((one) => one.id === step.id);
      if (now) store(turn, "slow", ended(now, nowMs, step.ending, step.says), null);
      break;
    }
    case "decide":
      decide(turn, step.decision);
      break;
    case "publish":
      decisions.push(step.decision);
      break;
    case "validate":
      validate(turn, step);
      break;
    case "validated":
      validatedSlowdown(turn, step);
  }
}

function validatedSlowdown(
  turn: Turn,
  { id, validated: { validation, verdict: found }, atMs }: Extract<JobStep, { step: "validated" }>,
): void {
  const { state } = turn;
  const now = openSlowdowns(state).find((one) => one.id === id);
  if (!now) return;
  const verdict = found && withoutVictims(found, accusedBeside(state, id));
  store(
    turn,
    "slow",
    validated(now, validation, verdict, atMs),
    verdict && publish(now, { verdict }),
  );
}

/** Once an incident, and not more often than is allowed: the job waits for the tests. */
function validate(
  { state, nowMs, decisions }: Turn,
  { run, tests, iterationMs }: Extract<JobStep, { step: "validate" }>,
): void {
  const { slow, testedMs, options } = state;
  const allowed = options.validation;
  if (!allowed || !slow || slow.validation || run !== state.run) return;
  const ranks = tests.groups.reduce((sum, group) => sum + group.length, 0);
  if (ranks > allowed.mostRanks || nowMs - testedMs < allowed.everyMs) return;
  state.testedMs = nowMs;
  const { limitMs } = allowed;
  decisions.push({ do: "validate", run, id: slow.id, tests, iterationMs, limitMs });
}

function decide(
  { state, nowMs, decisions }: Turn,
  decision: Extract<JobStep, { step: "decide" }>["decision"],
): void {
  if (decision.do === "collect") {
    // The job may have gone on while this waited.
    if (![state.still?.id, state.suspicion?.incident.id].includes(decision.id)) return;
    decisions.push(decision);
  } else {
    // Over, settled, or overtaken by another slowdown while this waited.
    const { slowdowns, healthySince: since } = state;
    if (slowdowns.suspicion?.slowFrom !== decision.suspicion.slowFrom) return;
    if (slowdowns.isSettled && !decision.isAgain) return;
    const accused = new Set(openSlowdowns(state).flatMap(({ ranks }) => ranks));
    const unheard = unheardOf(decision.run, null, nowMs);
    decisions.push({ ...decision, since, accused, unheard });
  }
  state.isBusy = true;
}

function slowdownWords({ slowFrom, beforeMs, afterMs, intermittent }: SuspectedSlowdown): string {
  const ratio = afterMs / beforeMs;
  return intermittent
    ? intermittentWords(intermittent.slow.length, intermittent.of, ratio)
    : `iterations take ${ratio.toFixed(2)} times as long since iteration ${slowFrom}`;
}

function suspectedSlowdown(
  { state, nowMs }: Turn,
  run: JobRun,
  slowdown: SuspectedSlowdown,
): Incident {
  const { slowFrom, fromMs } = slowdown;
  const says = [
    slowdownWords(slowdown),
    "searching for the root cause",
    unheardWords(unheardOf(run, null, nowMs)),
  ];
  const record = suspected({
    job: state.job,
    run: run.run,
    kind: "fail-slow",
    summary: says.filter((one) => one !== null).join("; "),
    onsetMs: fromMs,
    nowMs,
    fromIteration: slowFrom,
  });
  // Two culprits of one stretch begin with the same iteration.
  const known = [
    ...openSlowdowns(state),
    ...state.earlier,
    ...(state.recent ? [state.recent] : []),
  ];
  const ids = new Set(known.map(({ id }) => id));
  let [id, number] = [record.id, 1];
  while (ids.has(id)) id = `${record.id}-${++number}`;
  return withIntermittent({ ...record, id }, slowdown);
}

function store(
  turn: Turn,
  which: "slow" | "still",
  incident: Incident,
  next: JobStep | null,
): void {
  const { state } = turn;
  const isBeside = which === "slow" && state.besides.some(({ id }) => id === incident.id);
  const now = isOpen(incident) ? incident : null;
  if (isBeside)
    state.besides = state.besides.flatMap((one) => (one.id === incident.id ? (now ?? []) : one));
  else state[which] = now;
  if (!state.slow) [state.slow = null, ...state.besides] = state.besides;
  if (!isOpen(incident)) {
    state.wastedBefore += incident.wastedGpuMs;
    state.levels = new Map([...state.levels].filter(([id]) => id !== incident.id));
    if (state.recent) state.earlier = [state.recent, ...state.earlier].slice(0, MOST_EARLIER);
    state.recent = incident;
  }
  save(turn, incident, next);
}

function save({ state, decisions }: Turn, incident: Incident, next: JobStep | null): void {
  decisions.push(saveDecision(state, incident, true, next));
  state.isBusy = true;
}

function saveDecision(
  { slow, besides, still, recent }: JobState,
  incident: Incident,
  isStep: boolean,
  next: JobStep | null,
): SaveDecision {
  return { do: "save", incident, shown: { slow, besides, still, recent }, isStep, next };
}

function publish(incident: Incident, diagnosis: Diagnosis): JobStep {
  return { step: "publish", decision: { do: "publish", incident, diagnosis } };
}

export function enqueue(state: Turn["state"], step: JobStep): void {
  state.steps = [...state.steps, step];
}

export function enqueueDecision(state: Turn["state"], decision: CollectDecision): void {
  enqueue(state, { step: "decide", decision });
}
