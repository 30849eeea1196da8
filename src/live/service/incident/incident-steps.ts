/** How a job's incidents change, one step after the other: a step waits while the decision before it is carried out. */
import {
  accusedBeside,
  confirm,
  publish,
  save,
  saveDecision,
  store,
  type Turn,
} from "./incident-book.ts";
import { confirmed, ended, validated, withoutVictims } from "./incident-lifecycle.ts";
import type { CollectDecision, EventOf, JobStep } from "../job/job-events.ts";
import { openSlowdowns, withWasteNow } from "../job/job-state.ts";
import { ranksUnheard, unheardOf, withLastReports, withUnheard } from "../job/partial-view.ts";
import { withdraw } from "../slowdown/culprit-steps.ts";
import { explain } from "../slowdown/explain-steps.ts";
import { explainedPause, provesStandstill } from "../standstill/standstill-proof.ts";
import { standstillVerdict } from "../standstill/standstill-verdict.ts";

/** Performs the steps whose turn has come. */
export function advance(turn: Turn): void {
  const { state } = turn;
  while (!state.isBusy && state.steps.length > 0) {
    const [first, ...rest] = state.steps;
    state.steps = rest;
    perform(turn, first!);
  }
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
    const told = found ?? { verdict };
    const next = { step: "confirm", which: "still", diagnosis: told, atMs: nowMs } as const;
    store(turn, "still", state.still, next);
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
    case "confirm":
      confirm(turn, step);
      break;
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
    case "withdraw":
      withdraw(turn, step.id);
      break;
    case "explain":
      explain(turn, step.key);
      break;
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

/** The job may have gone on while this waited. */
function decide({ state, decisions }: Turn, decision: CollectDecision): void {
  if (![state.still?.id, state.suspicion?.incident.id].includes(decision.id)) return;
  decisions.push(decision);
  state.isBusy = true;
}
