/**
 * The life of an incident as pure steps: each takes the record as it was and what was seen, and gives the record as it
 * is now, with the next revision. Nothing here knows time, agents or stores.
 */
import { rankWords } from "../../../base/text.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Incident, IncidentAction, IncidentEnding } from "../../../model/incident.ts";
import { pastVerdict } from "../../../model/past-verdict.ts";
import type { Suspect, Verdict } from "../../../model/verdict.ts";
import type { Slowdown } from "../slowdown/pace-watch.ts";

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
  const namedMs = incident.namedMs ?? (verdict.suspects.length > 0 ? nowMs : undefined);
  return changed(incident, nowMs, {
    ...told(incident, verdict),
    ...(namedMs === undefined ? {} : { namedMs }),
    state,
    verdict,
    resolvedMs: null,
  });
}

export function resolved(incident: Incident, nowMs: number, why: string): Incident {
  const verdict = incident.verdict && pastVerdict(incident.verdict);
  return changed(incident, nowMs, { state: "resolved", resolvedMs: nowMs, summary: why, verdict });
}

/** The same of a job's slowdown or standstill, in the past tense; `says`: how it ended, and how the job is since. */
export function ended(
  incident: Incident,
  nowMs: number,
  ending: IncidentEnding,
  says: string,
): Incident {
  const between = betweenWords(incident.onsetMs, nowMs);
  const summary = `${toldSlowdown(incident, between) ?? `${pastWords(incident)} ${between}`}: ${says}`;
  return { ...resolved(incident, nowMs, summary), ending, endingSays: says };
}

/** With its device, what showed it, and the job's pace with it and without; null where the verdict does not say. */
function toldSlowdown({ kind, verdict }: Incident, between: string): string | null {
  const answer = verdict && pastVerdict(verdict).answer;
  if (!answer || kind !== "fail-slow" || answer.who === "") return null;
  const slower = answer.slower === null ? "" : ` (the job took ${answer.slower})`;
  return `${answer.who} ${answer.what}, ${between}${slower}`;
}

function pastWords({ kind, verdict, ranks }: Incident): string {
  const [first] = verdict?.suspects ?? [];
  const who = verdict?.answer?.who || (first && culpritWords(first));
  if (kind === "crash") return `the job was down${who === undefined ? "" : ` because of ${who}`}`;
  if (kind === "hang") {
    const because = who ?? (ranks.length > 0 ? rankWords(ranks) : undefined);
    return `the job stood still${because === undefined ? "" : ` because of ${because}`}`;
  }
  if (kind === "regression") return `the code was slower (${first?.cause ?? "unknown"})`;
  return first ? `${who} was slow (${first.cause})` : "the job was slow";
}

/** Who or what it is, in a few words. */
export function culpritWords({ type, name, link, ranks, machine }: Suspect): string {
  if (name !== null) return name;
  if (link) return `the link ${link.join(" – ")}`;
  if (type === "machine" && machine !== null) return machine;
  const where = machine === null ? "" : ` on ${machine}`;
  return ranks.length > 0 ? `${rankWords(ranks)}${where}` : `the ${type}${where}`;
}

function betweenWords(fromMs: number, toMs: number): string {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  const isOneDay = from.slice(0, 10) === to.slice(0, 10);
  const of = (time: string): string =>
    isOneDay ? time.slice(11, 19) : time.slice(0, 19).replace("T", " ");
  return `from ${of(from)} to ${of(to)} UTC`;
}

/** The same suspects as of one that was over. */
export function relapsed(
  old: Incident,
  verdict: Verdict,
  fromIteration: number | null,
  nowMs: number,
): Incident {
  const { ending: _over, endingSays: _said, ...open } = old;
  return changed(open, nowMs, {
    ...told(old, verdict),
    namedMs: nowMs,
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
export function withSlowdown(
  known: Incident,
  { isPaced, slowFrom, beforeMs, afterMs, intermittent }: Slowdown,
): Incident {
  const incident: { -readonly [K in keyof Incident]: Incident[K] } = { ...known };
  if (isPaced) incident.fromIteration ??= slowFrom;
  delete incident.intermittent;
  if (!intermittent) return incident;
  return { ...incident, intermittent: { ...intermittent, ratio: afterMs / beforeMs } };
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

/** Windows of a regression are this long, and iterations are told some seconds after they end. */
const SAME_ONSET_MS = 60_000;

/** Whether a slowdown began with a regression: it is the same trouble. */
export function beganWith({ onsetMs }: Pick<Incident, "onsetMs">, regressionMs: number): boolean {
  return onsetMs >= regressionMs - SAME_ONSET_MS;
}

export function isOpen({ state }: Incident): boolean {
  return state !== "resolved";
}

export function isOfNetwork({ type, cause }: Suspect): boolean {
  return type === "nic" || type === "link" || type === "switch" || cause === "network-slow";
}

/** Whether two verdicts accuse the same culprit of the same cause. */
export function accusesSame(a: Verdict | null, b: Verdict | null): boolean {
  const [first] = a?.suspects ?? [];
  const [second] = b?.suspects ?? [];
  // Another trouble of the same machine is another incident: its story, its cost and its fix are others.
  return (
    isSameCulprit(first, second) && isSameLink(first!, second!) && first!.cause === second!.cause
  );
}

/** A link is the same as no other link of one of its ranks, nor as that rank's NIC. */
function isSameLink(a: Suspect, b: Suspect): boolean {
  if (a.type !== "link" && b.type !== "link") return true;
  return a.type === b.type && a.ranks.every((rank) => b.ranks.includes(rank));
}

/** Whether two verdicts accuse connections of different ranks between the same two machines. */
export function isSameLinkBetween(
  ranks: ReadonlyMap<Rank, { readonly machine: string }>,
  a: Verdict | null,
  b: Verdict,
): boolean {
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

/**
 * Whether a later verdict is about the incident's culprit: it may say more of it, an unknown cause becomes a known one.
 * `isSameStretch`: of the same slow iterations a surer search may also correct the cause.
 */
export function isAbout(incident: Incident, verdict: Verdict, isSameStretch: boolean): boolean {
  const [known] = incident.verdict?.suspects ?? [];
  if (!known) return true;
  const [now] = verdict.suspects;
  if (!isSameCulprit(known, now)) return false;
  const causes = [known.cause, now!.cause];
  return isSameStretch || causes[0] === causes[1] || causes.includes("unknown");
}

const PLACES: readonly Suspect["type"][] = ["rank", "gpu", "machine"];

/** A rank in common, or a machine, and either of both the network or neither. */
function isSameCulprit(a: Suspect | undefined, b: Suspect | undefined): boolean {
  if (!a || !b || isOfNetwork(a) !== isOfNetwork(b)) return false;
  const arePlaces = PLACES.includes(a.type) && PLACES.includes(b.type);
  if (!isOfNetwork(a) && !arePlaces && a.type !== b.type) return false;
  if (a.ranks.some((rank) => b.ranks.includes(rank))) return true;
  if (a.name !== null && a.name === b.name) return true;
  const areMachines = a.type === "machine" && b.type === "machine";
  return areMachines && a.machine !== null && a.machine === b.machine;
}

/** Less the ranks that other open incidents accuse: who is slow does not only wait. */
export function withoutVictims(verdict: Verdict, accused: ReadonlySet<number>): Verdict {
  if (!verdict.victims.some((rank) => accused.has(rank))) return verdict;
  return { ...verdict, victims: verdict.victims.filter((rank) => !accused.has(rank)) };
}

const KINDS: readonly Incident["kind"][] = [
  "hang",
  "crash",
  "fail-slow",
  "regression",
  "faulty-machine",
];

function told(incident: Incident, verdict: Verdict): Partial<Incident> {
  const found = KINDS.find((each) => each === verdict.kind) ?? incident.kind;
  // Processes died: that the others hang because of it makes no other kind of it.
  const kind = incident.kind === "crash" && found === "hang" ? "crash" : found;
  // All ranks run the code: none of them, and no machine, is the suspect.
  const suspects = kind === "regression" ? [] : verdict.suspects;
  const machines = suspects.flatMap(
    (one) => one.machines ?? (one.machine === null ? [] : [one.machine]),
  );
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
