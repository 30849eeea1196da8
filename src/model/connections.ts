import type { Job } from "./job.ts";
import type { LogFailure } from "./log.ts";

/**
 * Did a process die, or does it just not answer? When one dies, its peers see the connection close;
 * when it is stopped, they see nothing until an operator times out. null where no log could tell.
 */
export function connectionsClosedFirst(job: Job): boolean | null {
  const endings = job.failures.filter(isEnding);
  const closed = job.failures.filter(
    (f) =>
      f.role === "echo" &&
      f.cause === "process-gone" &&
      endings.every((ending) => cameBefore(f, ending)),
  );
  const timeouts = job.failures.filter(isTimeout);
  if (closed.length === 0) return timeouts.length > 0 ? false : null;
  if (timeouts.length === 0) return true;
  const firstClosed = earliestMs(closed);
  const firstTimeout = earliestMs(timeouts);
  if (firstClosed === null || firstTimeout === null) return null;
  return firstClosed < firstTimeout - CLOCK_TOLERANCE_MS;
}

/** Records of "Watchdog caught collective operation timeout". */
const WATCHDOG: ReadonlySet<string> = new Set(["torch.watchdog.timeout", "torch.watchdog.barrier"]);
const TIMEOUTS: ReadonlySet<string> = new Set([
  ...WATCHDOG,
  "torch.watchdog.stuck",
  "torch.watchdog.heartbeat",
  "torch.monitored-barrier",
  "torch.monitored-barrier.ranks",
  "torch.gloo.timeout",
  "torch.gloo.recv-timeout",
]);

export function isWatchdogTimeout({ signature }: Pick<LogFailure, "signature">): boolean {
  return WATCHDOG.has(signature);
}

/** Somebody waited in communication until its patience was over: the job stood still before. */
export function isTimeout({ signature }: LogFailure): boolean {
  return TIMEOUTS.has(signature);
}

/** Somebody outside ended the job: a scheduler, a person, a signal to the launcher. */
export function isEnding({ role, cause }: LogFailure): boolean {
  return role === "own" && cause === "scheduler";
}

/** Where and when something was told. */
type LoggedFailure = Pick<LogFailure, "file" | "line" | "timeMs">;

/** Whether one is known to have come before the other: by lines of one file, else by clocks. */
export function cameBefore(one: LoggedFailure, other: LoggedFailure): boolean {
  if (one.file === other.file) return one.line < other.line;
  if (one.timeMs === null || other.timeMs === null) return false;
  return one.timeMs < other.timeMs - CLOCK_TOLERANCE_MS;
}

/** Whether one is known to have come after any of the others; asked of many, so that they are gone through once. */
export function followsOn(others: readonly LoggedFailure[]): (one: LoggedFailure) => boolean {
  const firstLine = new Map<string, number>();
  for (const { file, line } of others)
    firstLine.set(file, Math.min(line, firstLine.get(file) ?? Infinity));
  const firstMs = earliestMs(others) ?? Infinity;
  return ({ file, line, timeMs }) => {
    const first = firstLine.get(file);
    return first === undefined ? (timeMs ?? 0) > firstMs + CLOCK_TOLERANCE_MS : first < line;
  };
}

/** c10d's log lines are off by up to a second, and so are well-kept clocks of different hosts. */
export const CLOCK_TOLERANCE_MS = 1000;

function earliestMs(events: readonly { readonly timeMs: number | null }[]): number | null {
  let first: number | null = null;
  for (const { timeMs } of events) {
    if (timeMs !== null && (first === null || timeMs < first)) first = timeMs;
  }
  return first;
}
