/**
 * What the job did before it was ended. A scheduler, a person, a launcher or a watchdog also ends jobs that have stood
 * still for long; then the end is the aftermath, and the question is who stopped. Time-outs tell, and so do clocks: no
 * iteration was reported any more, long before anything else was logged.
 */
import { largest } from "../../base/numbers.ts";
import { CLOCK_TOLERANCE_MS, followsOn, isEnding, isTimeout } from "../../model/connections.ts";
import type { Place } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LogFailure } from "../../model/log.ts";
import { START } from "../../model/series.ts";

export interface BeforeTheEnd {
  readonly did: "stand still" | "run" | "unknown";
  /** How that is known; "" where it is not. */
  readonly says: string;
  readonly at: readonly Place[];
  /** Milliseconds since 1970; null where no clock tells. */
  readonly sinceMs: number | null;
}

/** A stand-still is longer than this, and than so many of the longest pauses that the job got over. */
const LEAST_MS = 60_000;
const PAUSES = 2;
/** And than any evaluation or checkpoint, where one was announced. */
const ANNOUNCED_MS = 30 * 60_000;
/** Zones differ by multiples of this, and two files may be written in two zones. */
const ZONE_MS = 30 * 60_000;
const FEWEST_REPORTS = 3;
const UNKNOWN: BeforeTheEnd = { did: "unknown", says: "", at: [], sinceMs: null };

/** `failures`: those that were not survived. */
export function beforeTheEnd(job: Job, failures: readonly LogFailure[]): BeforeTheEnd {
  const isAfterEnd = followsOn(failures.filter(isEnding));
  const timeouts = failures.filter((one) => isTimeout(one) && !isAfterEnd(one));
  if (timeouts.length === 0) return byClock(job, failures);
  const at = timeouts.slice(0, 2).map(({ file, line }) => ({ file, line }));
  return { did: "stand still", says: "operators had timed out", at, sinceMs: null };
}

function byClock({ series }: Job, failures: readonly LogFailure[]): BeforeTheEnd {
  const timed = failures.filter(({ role, timeMs }) => role !== "stall" && timeMs !== null);
  const reports = series.filter(
    ({ basis, endMs }) =>
      basis !== "operators" && endMs.length >= FEWEST_REPORTS && endMs.at(-1)! > 0,
  );
  if (timed.length === 0 || reports.length === 0) return UNKNOWN;
  const first = timed.reduce((a, b) => (b.timeMs! < a.timeMs! ? b : a));
  const last = reports.reduce((a, b) => (b.endMs.at(-1)! > a.endMs.at(-1)! ? b : a));
  const sinceMs = last.endMs.at(-1)!;
  const stillMs = first.timeMs! - sinceMs;
  const pauseMs = largest(reports.map(longestPause), 0);
  const at = [{ file: last.file, line: last.line.at(-1)! }];
  const iteration = last.iteration.at(-1)!;
  if (stillMs <= pauseMs + CLOCK_TOLERANCE_MS)
    return { did: "run", says: `iterations continued until ${iteration}`, at, sinceMs };
  const announced = reports.reduce((bits, { after = 0 }) => bits | after, 0);
  const leastMs = Math.max(LEAST_MS, PAUSES * pauseMs, announced === 0 ? 0 : ANNOUNCED_MS);
  const isZone =
    first.file !== last.file &&
    Math.abs(stillMs - Math.round(stillMs / ZONE_MS) * ZONE_MS) < LEAST_MS;
  if (stillMs <= leastMs || isZone || (announced & START) !== 0) return UNKNOWN;
  const minutes = Math.round(stillMs / 60_000);
  const says = `no iteration had been reported for ${minutes} min, since iteration ${iteration}`;
  return { did: "stand still", says, at, sinceMs };
}

/** The longest time between two reports of a job that went on; starts take as long as they like. */
function longestPause({ endMs, between }: Job["series"][number]): number {
  let longestMs = 0;
  for (let i = 1; i < endMs.length; i++) {
    const pauseMs = endMs[i]! - endMs[i - 1]!;
    if (pauseMs > longestMs && (between[i]! & START) === 0) longestMs = pauseMs;
  }
  return longestMs;
}
