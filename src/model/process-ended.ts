import { connectionsClosedFirst } from "./connections.ts";
import type { Job } from "./job.ts";
import type { LogFailure } from "./log.ts";

/**
 * Did any process end before the job stopped? Who only ended because an operator timed out does not count: that is how
 * a hang ends.
 */
export function processEnded(job: Job): boolean {
  const failures = job.failures.filter((failure) => !wasSurvived(job, failure));
  if (failures.some(({ role }) => role === "own")) return true;
  // An abort is what a watchdog does, SIGTERM what the launcher does to the rest.
  if (job.torchrun.some(({ signal }) => !/SIGTERM|SIGABRT/.test(signal))) return true;
  // Errors of communication without any timeout were raised, not waited for.
  return (
    connectionsClosedFirst({ ...job, failures }) ?? failures.some(({ role }) => role === "echo")
  );
}

/** A rank that reports iterations again after its error got over it, or was started anew. */
export function wasSurvived(job: Job, failure: LogFailure): boolean {
  const log = failure.rank === null ? undefined : job.logs.get(failure.rank);
  if (log?.finished && log.file === failure.file) return true;
  return log !== undefined && log.file === failure.file && log.lastIterationLine > failure.line;
}
