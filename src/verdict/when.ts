/** When it happened: the iteration in which the job stopped, and the time of the first symptom. */
import { factOf, factsOf, slowTimesOf } from "../model/facts.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { Suspect, Verdict } from "../model/verdict.ts";
import { type Case, evidenceOf, firstOf, isSlow, isStop, slowDownOf } from "./case.ts";

export function whenDidItHappen(given: Case, suspects: readonly Suspect[]): Verdict["when"] {
  const { job, kind, findings } = given;
  const slow = isSlow(given) ? slowSince(given, suspects) : null;
  if (slow) {
    const { iteration, from, to, sinceStart, recordFrom } = slowTimesOf(slow)!;
    const rose = sinceStart === true ? riseOf(findings) : null;
    // The record of operators begins in the middle of what iteration times show.
    if (rose !== null && rose < (recordFrom ?? 0)) return { iteration: rose, from: null, to };
    // Slow in all that was recorded: which iteration was the first, nothing tells where others came before the record.
    const isOpen = sinceStart === true && (recordFrom ?? 1) > FIRST;
    return { iteration: isOpen ? null : iteration, from, to };
  }
  if (isSlow(given)) return { iteration: riseOf(findings), from: null, to: null };
  if (isStop(given))
    return { iteration: iterationOf(job, suspects), from: since(given, suspects), to: null };
  const odd = factsOf(evidenceOf(given, suspects[0]), "odd-machine");
  const [seen] = kind === "faulty-machine" ? odd : [];
  return { iteration: null, from: seen?.since ?? null, to: seen?.until ?? null };
}

/** A record that begins with one of these begins with the job: a profiler and an iteration finder skip the first. */
const FIRST = 3;
/** Iterations by which two witnesses of one change may differ. */
const SAME_CHANGE = 2;
/** Of what iterations take longer, the share that a rank must lose for it to be the same change. */
const MOST_OF_IT = 0.5;

/**
 * What is said of the first suspect tells best when it began; but ranks may cut iterations a little earlier than the log
 * prints them, and a record that begins in the middle of it knows no beginning.
 */
function slowSince(given: Case, suspects: readonly Suspect[]): Finding | null {
  const { findings } = given;
  const own = slowDownOf(evidenceOf(given, suspects[0]));
  const printed = slowDownOf(findings.filter(({ method }) => method === "iterations/slow-down"));
  if (!own || !printed) return own ?? printed ?? slowDownOf(findings);
  const began = slowTimesOf(printed)!.iteration;
  const { sinceStart, recordFrom, iteration } = slowTimesOf(own)!;
  const { beforeMs = 0, afterMs = 0 } = factOf(printed, "slow-down") ?? {};
  const growthMs = factOf(own, "slow-rank", "slow-device")?.growthMs ?? 0;
  // Slow in most of what is compared: the few iterations before, which do not show there, iteration times do show.
  const isSame = growthMs >= MOST_OF_IT * (afterMs - beforeMs);
  const beganBefore = sinceStart === true && ((recordFrom ?? 0) >= began || isSame);
  return beganBefore || Math.abs(iteration - began) <= SAME_CHANGE ? printed : own;
}

function riseOf(findings: readonly Finding[]): number | null {
  const rises = factsOf(findings, "even-iterations").map(({ riseFrom }) => riseFrom);
  return rises.find((one) => one !== undefined) ?? null;
}

/** The first iteration that not everybody who reports iterations has finished. */
function iterationOf(job: Job, suspects: readonly Suspect[]): number | null {
  const last = [...job.logs.values()].map((log) => log.lastIteration).filter((n) => n >= 0);
  if (last.length === 0) return null;
  const least = last.reduce((a, b) => Math.min(a, b));
  // A loss that is not a number is printed with the iteration that produced it.
  const own = suspects[0]?.ranks.map((rank) => job.logs.get(rank)?.lastIteration ?? -1) ?? [];
  if (suspects[0]?.cause === "numerical") return own.find((n) => n >= 0) ?? least;
  const counted = iterationsByCounters(job);
  return (counted === null ? least : Math.min(least, counted)) + 1;
}

/**
 * Pipeline stages report iterations that other stages have not finished. Where a reporting rank has
 * completed a whole multiple of the iterations it reports, and issued one more, the same counter of the
 * rank that is furthest behind says how many iterations everybody has finished.
 */
function iterationsByCounters(job: Job): number | null {
  const perIteration = new Map<string, number>();
  for (const [rank, { dump, groupIds }] of job.dumps) {
    const reported = job.logs.get(rank)?.lastIteration ?? -1;
    if (reported < MIN_ITERATIONS) continue;
    for (const [index, group] of dump.groups.entries()) {
      const { role, carriesP2p } = job.groups[groupIds[index]!]!;
      if (carriesP2p) continue;
      const each = group.completed / reported;
      // The rank has issued exactly one more iteration than it finished; a multiple alone may be chance.
      const isWhole = Number.isInteger(each) && group.enqueued === (reported + 1) * each;
      const whole = group.completed > 0 && isWhole ? each : 0;
      if (perIteration.get(role) === undefined) perIteration.set(role, whole);
      else if (perIteration.get(role) !== whole) perIteration.set(role, 0);
    }
  }
  let least: number | null = null;
  for (const { dump, groupIds } of job.dumps.values()) {
    for (const [index, group] of dump.groups.entries()) {
      const { role, carriesP2p } = job.groups[groupIds[index]!]!;
      const each = perIteration.get(role) ?? 0;
      if (carriesP2p || each === 0 || group.completed < 0) continue;
      const finished = Math.floor(group.completed / each);
      least = least === null ? finished : Math.min(least, finished);
    }
  }
  return least;
}

/** Below this a multiple is likely to be chance. */
const MIN_ITERATIONS = 4;

function since({ job, kind, findings }: Case, suspects: readonly Suspect[]): string | null {
  const waiting = firstOf(findings, ({ data }) => ("since" in data ? data.since : null));
  if (kind === "hang") return waiting;
  const blamed = new Set(suspects.flatMap((suspect) => suspect.ranks));
  const times = job.failures
    .filter(
      (failure) => failure.role === "own" && failure.rank !== null && blamed.has(failure.rank),
    )
    .flatMap((failure) => failure.timeMs ?? []);
  return times.length > 0
    ? new Date(times.reduce((a, b) => Math.min(a, b))).toISOString()
    : waiting;
}
