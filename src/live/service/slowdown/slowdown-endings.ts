/** When slowdowns are over: each by itself while others last, all when the job is back at its pace (docs/incidents.md). */
import { thousands } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import { backSince, isBack, lastPaceMs, withPeak } from "./culprit-level.ts";
import { isOfNetwork } from "../incident/incident-lifecycle.ts";
import { enqueue, type Turn } from "../incident/incident-steps.ts";
import type { JobRun } from "../job/job-run.ts";
import { type JobState, openSlowdowns } from "../job/job-state.ts";
import type { SuspectedSlowdown } from "./slowdown-detector.ts";

/** Iterations in which a culprit is as before: by itself while others are slow, and where the whole job is back. */
const BACK_ALONE = 4;
const BACK_TOGETHER = 2;
/** Above this much of the healthy pace, the job may be faster because one of several culprits is fixed. */
const USUAL = 1.05;

/** Where several are slow, each is looked at by itself: one that is fixed closes alone. */
export function lookAtEach({ state }: Pick<Turn, "state">, run: JobRun): void {
  const open = openSlowdowns(state);
  if (open.length === 1) searchForAnother(state, open[0]!, run);
  if (open.length < 2) return;
  const areOfNetwork = open.filter(isNetworks);
  let left = open.length;
  const saysFixed = `fixed; others are still slow, and iterations take ${thousands(Math.round(lastPaceMs(run)))} ms`;
  for (const incident of open) {
    const { id } = incident;
    const level = state.levels.get(id);
    if (level) state.levels = new Map(state.levels).set(id, withPeak(run, level));
    const isDue = state.steps.some((step) => step.step === "resolve-one" && step.id === id);
    // The last one ends with the job's pace.
    // What two network devices add to an iteration cannot be told apart.
    const isShared = isNetworks(incident) && areOfNetwork.length > 1;
    if (!isDue && (left === 1 || isShared || !isFixed(state, incident, run))) continue;
    left--;
    if (!isDue) enqueue(state, { step: "resolve-one", id, ending: "fixed", says: saysFixed });
  }
}

/** The only culprit that is known is as fast as before, and the job is not: somebody else is slow since then. */
function searchForAnother(state: JobState, incident: Incident, run: JobRun): void {
  const level = state.levels.get(incident.id);
  if (!level || !isFixed(state, incident, run)) return;
  const [first] = incident.verdict!.suspects;
  const since = backSince(run, first!, level, state.baselineMs ?? Infinity);
  if (since !== null) state.slowdowns.beginAgain(since);
}

function isNetworks({ verdict }: Incident): boolean {
  const [first] = verdict?.suspects ?? [];
  return first !== undefined && isOfNetwork(first);
}

function isFixed(
  { levels, baselineMs }: JobState,
  { id, verdict }: Incident,
  run: JobRun,
  iterations = BACK_ALONE,
): boolean {
  const [first] = verdict?.suspects ?? [];
  const level = levels.get(id);
  if (!first || !level) return false;
  return isBack(run, first, level, baselineMs ?? Infinity, iterations, iterations === BACK_ALONE);
}

/**
 * The job's pace is back. Where several were slow and the pace is nearly back only, those that are seen to be slow still
 * go on: the pace that they leave, or null where all is over.
 */
export function onRecovered(
  { state }: Turn,
  run: JobRun,
  { beforeMs }: SuspectedSlowdown,
): number | null {
  const open = openSlowdowns(state);
  const paceMs = lastPaceMs(run);
  const pace = `iterations take ${thousands(Math.round(paceMs))} ms again`;
  if (state.relieved) {
    const { incidents } = state.relieved;
    for (const { id } of open.filter((one) => !incidents.has(one.id)))
      enqueue(state, { step: "resolve-one", id, ending: "passed", says: `passed; ${pace}` });
    return null;
  }
  const isSlow = (one: Incident): boolean =>
    state.levels.get(one.id)?.isUp === true && !isFixed(state, one, run);
  const slow = paceMs > USUAL * beforeMs ? open.filter(isSlow) : [];
  if (slow.length > 0 && slow.length < open.length) {
    lookAtEach({ state }, run);
    return paceMs;
  }
  for (const one of open.slice(1).reverse()) {
    const ending = isFixed(state, one, run, BACK_TOGETHER) ? "fixed" : "passed";
    enqueue(state, { step: "resolve-one", id: one.id, ending, says: `${ending}; ${pace}` });
  }
  if (!state.slow) return null;
  const ending = isFixed(state, state.slow, run, BACK_TOGETHER) ? "fixed" : "passed";
  enqueue(state, { step: "resolve", which: "slow", ending, says: `${ending}; ${pace}` });
  return null;
}
