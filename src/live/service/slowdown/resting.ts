/**
 * Culprits that are not slow at the moment, and may be again soon: one that was slow for a few iterations, or came back before. Its
 * incident goes on until a long quiet time has passed, or somebody else is slow (docs/incidents.md, rule 6): people hear of one
 * fault once.
 */
import type { Incident } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { Turn } from "../incident/incident-book.ts";
import type { JobIterations } from "../job/job-iterations.ts";
import { openSlowdowns } from "../job/job-state.ts";

/** What was slow for fewer iterations may be the first of several stretches. */
const SHORT_STRETCH = 10;
/** It is over after so many iterations, so long, and so many of the longest gaps between its stretches. */
const QUIET_ITERATIONS = 30;
const QUIET_MS = 10_000;
const QUIET_GAPS = 2;

export interface Resting {
  /** Its type and ranks. */
  readonly who: string;
  /** When its last stretch ended, milliseconds since 1970; null while it is slow again. */
  readonly endedMs: number | null;
  readonly longestGapMs: number;
}

type State = Turn["state"];

function whoIs({ type, ranks }: LiveCulprit): string {
  return `${type} ${ranks.join()}`;
}

/** Whether the culprit of an incident rests from now on; its incident is over if not. */
export function rest(
  state: State,
  { id, relapses, ranks }: Incident,
  culprit: LiveCulprit,
  endedMs: number,
): boolean {
  const known = state.resting.get(id);
  const { iterations } = state.run!;
  const isShort = iterationsIn(iterations, culprit.sinceMs, endedMs) < SHORT_STRETCH;
  const isAlone = openSlowdowns(state).length === 1;
  // Of one that is slow now and then the judge has seen a long quiet time itself.
  if (!isAlone || ranks.length === 0 || culprit.shape === "now-and-then") return false;
  if (!isShort && !known && relapses === 0) return false;
  const longestGapMs = known?.longestGapMs ?? 0;
  put(state, id, { who: whoIs(culprit), endedMs, longestGapMs });
  return true;
}

function iterationsIn(iterations: JobIterations, fromMs: number, toMs: number): number {
  return iterations.firstAfter(toMs) - iterations.firstAfter(fromMs);
}

/** The incident of a culprit that rested, and is slow again; null for none. */
export function wake(state: State, culprit: LiveCulprit): string | null {
  const who = whoIs(culprit);
  for (const [id, one] of state.resting) {
    if (one.who !== who || one.endedMs === null) continue;
    const gapMs = Math.max(one.longestGapMs, culprit.sinceMs - one.endedMs);
    put(state, id, { who, endedMs: null, longestGapMs: gapMs });
    return id;
  }
  return null;
}

/** Incidents whose culprits have been quiet for long; `isOver`: all that rest, for somebody else is slow. */
export function restedLong({ state, nowMs }: Turn, isOver = false): Incident[] {
  const pausedMs = QUIET_ITERATIONS * (state.run?.iterations.lastMs || 0);
  return openSlowdowns(state).filter(({ id }) => {
    const one = state.resting.get(id);
    if (!one || one.endedMs === null) return false;
    const quietMs = Math.max(QUIET_MS, pausedMs, QUIET_GAPS * one.longestGapMs);
    return isOver || nowMs - one.endedMs > quietMs;
  });
}

export function forgetResting(state: State, id: string): void {
  if (state.resting.has(id))
    state.resting = new Map([...state.resting].filter(([other]) => other !== id));
}

function put(state: State, id: string, resting: Resting): void {
  state.resting = new Map(state.resting).set(id, resting);
}
