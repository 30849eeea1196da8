/**
 * The life of an incident as pure steps: each takes the record as it was and what was seen, and gives the record as it
 * is now, with the next revision. Nothing here knows time, agents or stores.
 */
import type { Incident, IncidentAction } from "../../model/incident.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { SuspectedSlowdown } from "./slowdown-detector.ts";

export interface Suspicion {
  readonly job: string;
  readonly run: string;
  readonly kind: Incident["kind"];
  readonly summary: string;
  readonly onsetMs: number;
  readonly nowMs: number;
  readonly fromIteration: number | null;
}

/** The iteration is for people; a job that goes back to a checkpoint comes by it again, at another second. */
export function incidentId({ job, run, kind, fromIteration, onsetMs }: Suspicion): string {
  const second = Math.floor(onsetMs / 1000).toString(36);
  const when = fromIteration === null ? second : `i${fromIteration}-${second}`;
  return `${job}.${run}.${kind}.${when}`;
}

export function suspected(suspicion: Suspicion): Incident {
  const { job, run, kind, summary, onsetMs, nowMs, fromIteration } = suspicion;
  return {
    id: incidentId(suspicion),
    job,
    run,
    revision: 1,
    state: "suspected",
    kind,
    summary,
    onsetMs,
    openedMs: nowMs,
    changedMs: nowMs,
    resolvedMs: null,
    fromIteration,
    relapses: 0,
    verdict: null,
    machines: [],
    ranks: [],
    wastedGpuMs: 0,
    actions: [],
  };
}

/** It lasts, and this is what is known: confirmed, or relapsed where it was over before. */
export function confirmed(incident: Incident, verdict: Verdict, nowMs: number): Incident {
  const state = incident.relapses > 0 ? "relapsed" : "confirmed";
  return changed(incident, nowMs, { ...told(incident, verdict), state, verdict, resolvedMs: null });
}

export function resolved(incident: Incident, nowMs: number, why: string): Incident {
  return changed(incident, nowMs, { state: "resolved", resolvedMs: nowMs, summary: why });
}

/** The same suspects as of one that was over. */
export function relapsed(
  old: Incident,
  verdict: Verdict,
  fromIteration: number | null,
  nowMs: number,
): Incident {
  return changed(old, nowMs, {
    ...told(old, verdict),
    state: "relapsed",
    verdict,
    resolvedMs: null,
    relapses: old.relapses + 1,
    fromIteration,
  });
}

export function withActions(
  incident: Incident,
  actions: readonly IncidentAction[],
  nowMs: number,
): Incident {
  return changed(incident, nowMs, { actions });
}

export function withWaste(incident: Incident, wastedGpuMs: number): Incident {
  return { ...incident, wastedGpuMs };
}

/** How often it was slow so far; nothing of that where all iterations are. */
export function withIntermittent(
  known: Incident,
  { beforeMs, afterMs, intermittent }: SuspectedSlowdown,
): Incident {
  const incident: { -readonly [K in keyof Incident]: Incident[K] } = { ...known };
  delete incident.intermittent;
  if (!intermittent) return incident;
  const { slow, of } = intermittent;
  return { ...incident, intermittent: { slow: slow.length, of, ratio: afterMs / beforeMs } };
}

/** The ranks tested themselves: what came out, and what it cost. */
export function validated(
  incident: Incident,
  validation: NonNullable<Incident["validation"]>,
  verdict: Verdict | null,
  nowMs: number,
): Incident {
  const known = { ...incident, validation };
  return verdict ? confirmed(known, verdict, nowMs) : changed(known, nowMs, {});
}

export function isOpen({ state }: Incident): boolean {
  return state !== "resolved";
}

/** Whether two verdicts accuse the same: a rank in common, or a machine, of the first suspects. */
export function accusesSame(a: Verdict | null, b: Verdict | null): boolean {
  const [first] = a?.suspects ?? [];
  const [second] = b?.suspects ?? [];
  // Another trouble of the same machine is another incident: its story, its cost and its mend are others.
  if (!first || !second || first.cause !== second.cause) return false;
  if (first.ranks.some((rank) => second.ranks.includes(rank))) return true;
  const areMachines = first.type === "machine" && second.type === "machine";
  return areMachines && first.machine !== null && first.machine === second.machine;
}

const KINDS: readonly Incident["kind"][] = [
  "hang",
  "crash",
  "fail-slow",
  "regression",
  "faulty-machine",
];

function told(incident: Incident, verdict: Verdict): Partial<Incident> {
  const kind = KINDS.find((each) => each === verdict.kind) ?? incident.kind;
  const { suspects } = verdict;
  const machines = suspects.flatMap(({ machine }) => (machine === null ? [] : [machine]));
  return {
    kind,
    summary: verdict.summary,
    machines: [...new Set(machines)].slice(0, MOST_NAMED),
    ranks: [...new Set(suspects.flatMap(({ ranks }) => ranks))].slice(0, MOST_NAMED),
  };
}

/** Of the suspects: a verdict on a switch covers hundreds. */
const MOST_NAMED = 64;

function changed(incident: Incident, nowMs: number, change: Partial<Incident>): Incident {
  return { ...incident, ...change, revision: incident.revision + 1, changedMs: nowMs };
}
