import type { Cause } from "../model/cause.ts";
import type { FailureRole, LogFailure } from "../model/log.ts";

/** Signature of an exception that the library does not know. */
export const PYTHON_EXCEPTION = "python-exception";

/** What a telling line is about, before it is known who wrote it. */
export interface FailureClass {
  readonly signature: string;
  readonly role: FailureRole;
  readonly cause: Cause;
  /**
   * Whether it may be no more than the aftermath of a teardown: when a watchdog aborts its communicators, kernels
   * that still use them fail, and the process dies of a CUDA error that has nothing to do with its GPU (seen in
   * our recording hang3: seven ranks that only waited report an illegal memory access).
   */
  readonly canBeAftermath?: boolean;
}

/** The most that is kept of a telling line. */
export const TEXT_CHARS = 400;

/** A failure and its class, while the rank is being found out. */
export interface OpenFailure {
  readonly failure: LogFailure;
  readonly canBeAftermath: boolean;
  /** The last line before it in which the process reports an iteration; 0 for none. */
  readonly progressLine: number;
}

/** Signatures that say little more than that there was one: texts tell them apart. */
const EXCEPTION = /^python[-.]/;

/** Lines apart within which the same complaint of one process counts once. */
const SAME_LINES = 200;

/**
 * Makes echoes of what may be aftermath and follows on another failure without progress in between (a restarted
 * job goes on in the same log), and of whatever a process says that was asked to end; and drops repetitions: PyTorch tells one error through the log, through the
 * exception and through terminate(). Takes the failures of one process in the order of its lines.
 */
export function settle(failures: readonly OpenFailure[]): LogFailure[] {
  const settled: LogFailure[] = [];
  const seen = new Map<string, { line: number; index: number }>();
  /** Roles of what was reported since the process last made progress, by signature. */
  let roles = new Map<string, FailureRole>();
  let troubleLine = 0;
  let isToldToEnd = false;
  for (const { failure, canBeAftermath, progressLine } of failures) {
    if (progressLine > troubleLine) {
      roles = new Map();
      isToldToEnd = false;
    }
    let role = failure.role;
    if (isToldToEnd && failure.rank !== null && role === "own" && failure.cause !== "scheduler")
      role = "echo";
    isToldToEnd ||= failure.cause === "scheduler";
    // A repetition keeps its role; what is new after something else is its aftermath.
    if (canBeAftermath && roles.size > 0) role = roles.get(failure.signature) ?? "echo";
    const kept: LogFailure = role === failure.role ? failure : { ...failure, role };
    roles.set(failure.signature, role);
    troubleLine = failure.line;
    const text = EXCEPTION.test(kept.signature) ? kept.text : "";
    const key = `${kept.role} ${kept.signature} ${text}`;
    const before = seen.get(key);
    if (before && kept.line - before.line < SAME_LINES) {
      before.line = kept.line;
      const first = settled[before.index]!;
      // The traceback knows the place, the log line before it does not.
      settled[before.index] = {
        ...first,
        at: first.at ?? kept.at,
        times: (first.times ?? 1) + 1,
      };
      continue;
    }
    seen.set(key, { line: kept.line, index: settled.length });
    settled.push(kept);
  }
  return settled;
}
