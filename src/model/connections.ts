import type { Job } from "./job.ts";

/**
 * Did a process die, or does it just not answer? When one dies, its peers see the connection close;
 * when it is stopped, they see nothing until an operator times out. null where no log could tell.
 */
export function connectionsClosedFirst(job: Job): boolean | null {
  const closed = job.failures.filter((f) => f.role === "echo" && f.cause === "process-gone");
  const timeouts = job.failures.filter((f) => f.signature === WATCHDOG_TIMEOUT);
  if (closed.length === 0) return timeouts.length > 0 ? false : null;
  if (timeouts.length === 0) return true;
  const firstClosed = earliestMs(closed);
  const firstTimeout = earliestMs(timeouts);
  if (firstClosed === null || firstTimeout === null) return null;
  return firstClosed < firstTimeout - CLOCK_TOLERANCE_MS;
}

/** Signature of "Watchdog caught collective operation timeout". */
export const WATCHDOG_TIMEOUT = "nccl-watchdog";

/** c10d's log lines are off by up to a second, and so are well-kept clocks of different hosts. */
export const CLOCK_TOLERANCE_MS = 1000;

function earliestMs(events: readonly { readonly timeMs: number | null }[]): number | null {
  let first: number | null = null;
  for (const { timeMs } of events) {
    if (timeMs !== null && (first === null || timeMs < first)) first = timeMs;
  }
  return first;
}
