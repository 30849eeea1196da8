import { CLOCK_TOLERANCE_MS, connectionsClosedFirst, isEnding } from "./connections.ts";
import type { Job } from "./job.ts";
import type { LogFailure } from "./log.ts";
import { START } from "./series.ts";
import { failuresOf } from "./cause-failures.ts";

const UNKNOWN_ITERATION_MS = 30_000;
/** A dying process may print its error several times: by its logger, by the interpreter, by the launcher. */
const SAME_DEATH_MS = 15_000;

/**
 * Did any process end before the job stopped? Who only ended because an operator timed out, or because somebody outside
 * ended the job, does not count: that is how a hang ends.
 */
export function processEnded(job: Job): boolean {
  const failures = deadly(job);
  if (failures.some((failure) => failure.role === "own" && !isEnding(failure))) return true;
  // An abort is what a watchdog does, SIGTERM what the launcher does to the rest.
  if (job.torchrun.some(({ signal }) => !/SIGTERM|SIGABRT/.test(signal))) return true;
  // Errors of communication without any timeout were raised, not waited for.
  return (
    connectionsClosedFirst({ ...job, failures }) ?? failures.some(({ role }) => role === "echo")
  );
}

/** What no process lived through. What the logs' judgement names as the cause was not, whoever went on without it. */
export function deadly(job: Job): readonly LogFailure[] {
  const cause = job.logReport?.cause;
  const named = new Set(cause?.role === "root" ? failuresOf(job, cause) : []);
  return job.failures.filter((failure) => named.has(failure) || !wasSurvived(job, failure));
}

/** A rank that reports iterations again after its error got over it, or was started anew; so does one without which the job went on. */
export function wasSurvived(job: Job, failure: LogFailure): boolean {
  const log = failure.rank === null ? undefined : job.logs.get(failure.rank);
  if (log?.finished && log.file === failure.file) return true;
  if (log !== undefined && log.file === failure.file && log.lastIterationLine > failure.line)
    return true;
  if ((failure.role === "echo" || isEnding(failure)) && isFinished(job)) return true;
  if (failure.timeMs === null) return false;
  return diedTwice(job, failure, failure.timeMs) || wentOnAfter(job, failure.timeMs);
}

/**
 * Whether training came to its end: all who report iterations say so. Then time-outs, closed connections and signals are
 * how processes leave. One alone that says so among others that do not has left too early.
 */
function isFinished({ logs, strayLogs }: Job): boolean {
  const before = knownFinished.get(logs);
  if (before !== undefined) return before;
  const reporting = [...logs.values(), ...strayLogs].filter(
    ({ finished, lastIteration }) => finished || lastIteration >= 0,
  );
  const isDone = reporting.length > 0 && reporting.every(({ finished }) => finished);
  knownFinished.set(logs, isDone);
  return isDone;
}

/** Asked for every failure. */
const knownFinished = new WeakMap<Job["logs"], boolean>();

/** A process dies once: the same error at the same line, minutes apart, is one that it lives with (a sample that is skipped). */
function diedTwice(
  job: Job,
  { rank, file, role, signature, at, text }: LogFailure,
  timeMs: number,
) {
  if (role !== "own" || at === null) return false;
  const kind = exceptionOf(text);
  return job.failures.some(
    (other) =>
      other.file === file &&
      other.rank === rank &&
      other.signature === signature &&
      other.at === at &&
      other.timeMs !== null &&
      Math.abs(other.timeMs - timeMs) > SAME_DEATH_MS &&
      exceptionOf(other.text) === kind,
  );
}

/** "UnicodeDecodeError" */
function exceptionOf(text: string): string {
  return /^[\w.]+/.exec(text)?.[0] ?? "";
}

/**
 * Training is in step: without one rank nobody gets further than the end of the iteration. Whoever reports two more, or
 * that training is done, shows that all ranks lived; unless the job was started anew in between.
 */
function wentOnAfter(job: Job, timeMs: number): boolean {
  const isDone = [...job.logs.values()].some(({ finished }) => finished);
  for (const { basis, endMs, durationMs, between } of job.series) {
    const last = endMs.length - 1;
    if (basis === "operators" || last < 0) continue;
    // The iteration in which the error happened may still be reported, by a clock that is ahead.
    const two = isDone ? 0 : 2 * (durationMs[last] || UNKNOWN_ITERATION_MS);
    if (!(endMs[last]! > timeMs + two + (isDone ? -1 : 1) * CLOCK_TOLERANCE_MS)) continue;
    if (!startedSince(endMs, between, timeMs)) return true;
  }
  return false;
}

function startedSince(endMs: Float64Array, between: Uint8Array, timeMs: number): boolean {
  for (let i = endMs.length - 1; i >= 0 && endMs[i]! > timeMs; i--)
    if ((between[i]! & START) !== 0) return true;
  return false;
}
