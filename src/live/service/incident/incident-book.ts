/** The book of a job's incidents: what is written in it is saved first, then shown, then told to people. */
import type { Rank } from "../../../model/ids.ts";
import type { Incident } from "../../../model/incident.ts";
import type {
  CollectDecision,
  Diagnosis,
  JobDecision,
  JobStep,
  SaveDecision,
} from "../job/job-events.ts";
import { type JobState, openSlowdowns, withWasteNow } from "../job/job-state.ts";
import { confirmed, isOpen, withSlowdown, withoutVictims } from "./incident-lifecycle.ts";

/** Incidents that are over and stay at hand: one of them may come back, and alerts about them be due. */
const MOST_EARLIER = 12;

/** One event being reduced. */
export interface Turn {
  readonly state: { -readonly [K in keyof JobState]: JobState[K] };
  readonly nowMs: number;
  readonly decisions: JobDecision[];
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

/** What is known of it now is told, if it is still open. */
export function confirm(turn: Turn, step: Extract<JobStep, { step: "confirm" }>): void {
  const { state, nowMs } = turn;
  const { id, which, slowdown, atMs, diagnosis } = step;
  const now = id === undefined ? state[which] : openSlowdowns(state).find((one) => one.id === id);
  if (!now) return;
  const known = slowdown ? withSlowdown(now, slowdown) : now;
  const isSlow = which === "slow";
  const verdict = isSlow
    ? withoutVictims(diagnosis.verdict, accusedBeside(state, now.id))
    : diagnosis.verdict;
  const incident = confirmed(withWasteNow(state, which, known, nowMs), verdict, atMs);
  if (isSlow) clearOthers(state, incident);
  store(turn, which, incident, publish(incident, { ...diagnosis, verdict }));
}

/** Ranks that open incidents beside this one accuse. */
export function accusedBeside(state: JobState, id: string): Set<Rank> {
  const others = openSlowdowns(state).filter((one) => one.id !== id);
  return new Set(others.flatMap(({ ranks }) => ranks));
}

/** Who is accused does not only wait in the eyes of the incidents beside it. */
export function clearOthers(state: Turn["state"], accuser: Incident): void {
  const accused = new Set(accuser.ranks);
  for (const { id, verdict } of openSlowdowns(state))
    if (id !== accuser.id && verdict && withoutVictims(verdict, accused) !== verdict)
      enqueue(state, { step: "clear-victims", id, ranks: accused });
}

export function store(
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
    if (state.recent) state.earlier = [state.recent, ...state.earlier].slice(0, MOST_EARLIER);
    state.recent = incident;
  }
  save(turn, incident, next);
}

export function save({ state, decisions }: Turn, incident: Incident, next: JobStep | null): void {
  decisions.push(saveDecision(state, incident, true, next));
  state.isBusy = true;
}

export function saveDecision(
  { slow, besides, still, recent }: JobState,
  incident: Incident,
  isStep: boolean,
  next: JobStep | null,
): SaveDecision {
  return { do: "save", incident, shown: { slow, besides, still, recent }, isStep, next };
}

export function publish(incident: Incident, diagnosis: Diagnosis): JobStep {
  return { step: "publish", decision: { do: "publish", incident, diagnosis } };
}

export function enqueue(state: Turn["state"], step: JobStep): void {
  state.steps = [...state.steps, step];
}

export function enqueueDecision(state: Turn["state"], decision: CollectDecision): void {
  enqueue(state, { step: "decide", decision });
}
