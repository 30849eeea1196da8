/** How a job's incidents change, one step after the other: a step waits while the decision before it is carried out. */
import { intermittentWords, rankWords } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { Incident } from "../../model/incident.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import {
  accusesSame,
  confirmed,
  isOpen,
  relapsed,
  resolved,
  suspected,
  validated,
  withIntermittent,
  withWaste,
} from "./incident-lifecycle.ts";
import type {
  CollectDecision,
  Diagnosis,
  EventOf,
  JobDecision,
  JobStep,
  SaveDecision,
} from "./job-events.ts";
import type { JobRun } from "./job-run.ts";
import { type JobState, runName, withWasteNow } from "./job-state.ts";
import { unheardOf, withUnheard } from "./partial-view.ts";
import type { SuspectedSlowdown } from "./slowdown-detector.ts";
import { explainedPause, provesStandstill } from "./standstill-proof.ts";

/** Sure enough to name a suspect before all attempts are spent; and after so many slow iterations. */
const SURE = 0.5;
const SURE_LATER = 0.4;
const PATIENT = 5;
/** A second verdict that is surer by less says nothing new. */
const SURER = 0.1;
const MOST_EARLIER = 4;

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

/** The slowdown of this run that was resolved a short while ago. */
export function recentSlowdown({ state, nowMs }: Turn): Incident | null {
  const { recent, run, options } = state;
  if (recent?.kind !== "fail-slow" || recent.run !== run?.run) return null;
  return nowMs - (recent.resolvedMs ?? -Infinity) < options.relapseMs ? recent : null;
}

export function onLocalized(turn: Turn, { search, diagnosis }: EventOf<"localized">): void {
  const { state, nowMs } = turn;
  state.isBusy = false;
  const { run, slow: slowIterations, isAgain, isLast } = search;
  const now = state.slowdowns.suspicion;
  if (!diagnosis || now?.slowFrom !== search.suspicion.slowFrom) return;
  const { slowdown = search.suspicion } = diagnosis;
  const verdict = withUnheard(diagnosis.verdict, unheardOf(run, null, nowMs));
  const least = slowIterations >= PATIENT ? SURE_LATER : SURE;
  const isSure = verdict.suspects.length > 0 && verdict.confidence >= least;
  // A later search that finds no suspect takes nothing back.
  if (isAgain && !isSure) {
    if (slowdown.intermittent) state.slowdowns.miss();
    return;
  }
  if (!isSure && (!isLast || now.isTentative)) return;
  state.slowdowns.settle();
  if (diagnosis.tests)
    enqueue(state, {
      step: "validate",
      run,
      tests: diagnosis.tests,
      iterationMs: slowdown.afterMs,
    });
  // Its picture would say less, too: the healthy iterations to compare with get out of reach as it lasts.
  const isSameKind = Boolean(state.slow?.intermittent) === Boolean(slowdown.intermittent);
  if (isSameKind && state.slow?.verdict && addsNothing(state.slow.verdict, verdict)) return;
  // What tests found out, a search that ends in the same group does not take back.
  if (state.slow?.validation?.isNamed && accusesSame(state.slow.verdict, verdict)) return;
  const old = recentSlowdown(turn);
  if (!state.slow && old && accusesSame(old.verdict, verdict)) {
    const again = relapsed(old, verdict, slowdown.slowFrom, nowMs);
    // What it lost the first time is part of it again.
    state.wastedBefore = Math.max(0, state.wastedBefore - old.wastedGpuMs);
    const wasted = old.wastedGpuMs + lostSince(state, run, slowdown);
    const record = withIntermittent(withWaste(again, wasted), slowdown);
    store(turn, "slow", record, publish(again, { ...diagnosis, verdict }));
    return;
  }
  const confirm: JobStep = {
    step: "confirm",
    which: "slow",
    diagnosis: { ...diagnosis, verdict },
    slowdown,
    atMs: nowMs,
  };
  perform(turn, state.slow ? confirm : { step: "suspect", run, slowdown, next: confirm });
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
  const diagnosis = event.diagnosis && {
    ...event.diagnosis,
    verdict: withUnheard(event.diagnosis.verdict, unheardOf(evidence.run, null, nowMs)),
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
  const verdict = standstillVerdict(run, kind, ranks, says, diagnosis?.verdict ?? null);
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
  if (state.slow?.id === incident.id) state.slow = incident;
  else if (state.still?.id === incident.id) state.still = incident;
  else if (state.recent?.id === incident.id) state.recent = incident;
  else return;
  decisions.push(saveDecision(state, incident, false, null));
}

export function onSaved({ state }: Turn, { save }: EventOf<"saved">): void {
  const { incident, shown, isStep, next } = save;
  // What follows from a record (its actions) may have been saved meanwhile.
  const known = Object.values(state.shown).find((one: Incident | null) => one?.id === incident.id);
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
      if (!state.slow) store(turn, "slow", suspectedSlowdown(turn, step), step.next);
      break;
    case "confirm": {
      const now = state[step.which];
      if (!now) break;
      const known = step.slowdown ? withIntermittent(now, step.slowdown) : now;
      const incident = confirmed(
        withWasteNow(state, step.which, known, nowMs),
        step.diagnosis.verdict,
        step.atMs,
      );
      store(turn, step.which, incident, publish(incident, step.diagnosis));
      break;
    }
    case "resolve": {
      const incident = state[step.which];
      if (!incident) break;
      const now = withWasteNow(state, step.which, incident, nowMs);
      store(turn, step.which, resolved(now, nowMs, step.why), null);
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
      if (state.slow?.id === step.id) {
        const { validation, verdict } = step.validated;
        const next = verdict && publish(state.slow, { verdict });
        store(turn, "slow", validated(state.slow, validation, verdict, step.atMs), next);
      }
  }
}

/** Milliseconds between the request and the tests, and iterations: every rank must have seen the request by then. */
const LEAD_MS = 4000;
const LEAD_ITERATIONS = 4;

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
  const lead = Math.max(LEAD_ITERATIONS, Math.ceil(LEAD_MS / iterationMs));
  const atIteration = run.lastIteration + lead;
  const { limitMs } = allowed;
  decisions.push({ do: "validate", run, id: slow.id, tests, atIteration, iterationMs, limitMs });
}

function decide(
  { state, decisions }: Turn,
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
    decisions.push({ ...decision, since });
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
  { run, slowdown }: Extract<JobStep, { step: "suspect" }>,
): Incident {
  const { slowFrom, fromMs } = slowdown;
  const record = suspected({
    job: state.job,
    run: run.run,
    kind: "fail-slow",
    summary: `${slowdownWords(slowdown)}; searching for the root cause`,
    onsetMs: fromMs,
    nowMs,
    fromIteration: slowFrom,
  });
  return withIntermittent(withWaste(record, lostSince(state, run, slowdown)), slowdown);
}

function store(
  turn: Turn,
  which: "slow" | "still",
  incident: Incident,
  next: JobStep | null,
): void {
  const { state } = turn;
  state[which] = isOpen(incident) ? incident : null;
  if (!isOpen(incident)) {
    if (incident.run === runName(state)) state.wastedBefore += incident.wastedGpuMs;
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
  { slow, still, recent }: JobState,
  incident: Incident,
  isStep: boolean,
  next: JobStep | null,
): SaveDecision {
  return { do: "save", incident, shown: { slow, still, recent }, isStep, next };
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

const SURE_OF_PROCESSES = 0.6;
const UNSURE_OF_PROCESSES = 0.3;
const MOST_SUSPECTS = 64;

/**
 * The verdict of a standstill: that of the evidence, or, where the evidence says no more, what the service itself knows of
 * ranks that are gone or stopped. `diagnosed`: the verdict on the evidence, where there is one.
 */
function standstillVerdict(
  run: JobRun,
  kind: "hang" | "crash",
  ranks: readonly Rank[],
  says: string,
  diagnosed: Verdict | null,
): Verdict {
  if (diagnosed && (diagnosed.suspects.length > 0 || diagnosed.kind === kind)) return diagnosed;
  const blamed = ranks.slice(0, MOST_SUSPECTS);
  const cause = kind === "crash" ? "process-gone" : "process-stopped";
  const suspects = blamed.map((rank): Suspect => ({
    type: "rank",
    ranks: [rank],
    machine: run.ranks.get(rank)?.machine ?? null,
    link: null,
    name: null,
    cause,
    score: Math.floor((1000 * SURE_OF_PROCESSES) / Math.max(1, blamed.length)) / 1000,
    why: says,
    evidence: ["f1"],
  }));
  const who =
    suspects.length > 0
      ? `${rankWords(ranks)} ${kind === "crash" ? "died" : "stopped"}, which stops the job`
      : says;
  const finding = {
    id: "f1",
    method: "live/processes" as const,
    says,
    weight: suspects.length > 0 ? SURE_OF_PROCESSES : UNSURE_OF_PROCESSES,
    at: [],
    data: { fact: "remark" } as const,
  };
  return {
    schema: "faultline.verdict/1",
    kind,
    summary: `${who}. ${diagnosed ? "The collected evidence shows no more." : "No evidence could be collected."}`,
    confidence: suspects.length > 0 ? SURE_OF_PROCESSES : UNSURE_OF_PROCESSES,
    when: {
      iteration: run.lastIteration >= 0 ? run.lastIteration + 1 : null,
      from: null,
      to: null,
    },
    suspects,
    victims: [],
    owner: null,
    actions: [],
    findings: [finding],
    inputs: diagnosed?.inputs ?? [],
    missing: diagnosed?.missing ?? [],
    wouldHelp: diagnosed?.wouldHelp ?? [],
  };
}
