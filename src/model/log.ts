import type { Cause } from "./cause.ts";
import type { Rank } from "./ids.ts";

/**
 * own: the process says what went wrong with itself (an exception, a signal, out of memory).
 * echo: it says that somebody else is late or gone (watchdog, remote error, connection closed).
 * stall: the kernel says that a process waits, or that a device does not answer. That explains a hang; no process
 * has ended of it.
 */
export type FailureRole = "own" | "echo" | "stall";

/** One failure that a log tells of, stitched together where it spans lines. */
export interface LogFailure {
  readonly rank: Rank | null;
  readonly file: string;
  readonly line: number;
  /** Milliseconds since 1970, null where the line and its neighbours carry no time. */
  readonly timeMs: number | null;
  readonly role: FailureRole;
  readonly cause: Cause;
  /** Id of the library's record that says so ("cuda.oom.torch"); for what no record is of: "python-exception", "exit-status", … */
  readonly signature: string;
  /** The telling line, cut to 400 characters. */
  readonly text: string;
  /** Innermost frame of the user's own code, where a traceback was printed: "train.py:177 train_step". */
  readonly at: string | null;
  /** How often it was printed, where more than once: by one process, or by many that write without a prefix. */
  readonly times?: number;
}

/** PyTorch's watchdog on one operator: the frontier of one rank in one group, from the log alone. */
export interface WatchdogReport {
  readonly rank: Rank | null;
  readonly file: string;
  readonly line: number;
  readonly timeMs: number | null;
  /** The PG GUID, the name that flight-recorder dumps use too. */
  readonly group: string;
  readonly desc: string;
  readonly groupRank: number;
  /** Sequence number of the operator that timed out; -1 where unknown. */
  readonly seq: number;
  /** "ALLREDUCE", "SEND", … ; "" where unknown. */
  readonly op: string;
  /** Elements that the operator takes and gives on this rank; absent where the line does not say. */
  readonly numelIn?: number;
  readonly numelOut?: number;
  readonly enqueued: number;
  readonly completed: number;
}

/** A process group as a rank's log introduces it. */
export interface LogGroup {
  readonly rank: Rank;
  readonly name: string;
  readonly desc: string;
  readonly groupRank: number;
  /** 0 where unknown. */
  readonly size: number;
}

/** One failed process in torchrun's closing report. */
export interface TorchrunFailure {
  readonly file: string;
  readonly line: number;
  readonly rank: Rank;
  readonly host: string;
  readonly pid: number;
  readonly exitCode: number;
  /** "SIGKILL"; "" where the process exited by itself. */
  readonly signal: string;
  readonly timeMs: number | null;
  /** Whether torchrun calls it the root cause: it means "first seen by this node's agent", no more. */
  readonly isFirst: boolean;
}

/** What is known of a rank from its log's lines. */
export interface RankLog {
  readonly rank: Rank | null;
  readonly file: string;
  readonly lines: number;
  /** Last iteration that this rank reports as finished; -1 where it reports none. */
  readonly lastIteration: number;
  /** Line of that report, 0 where there is none: what failed before it was survived. */
  readonly lastIterationLine: number;
  /** The last line that is neither an echo of somebody else's failure nor a notice; 0 and "" where there is none. */
  readonly lastLine: number;
  readonly lastText: string;
  readonly lastTimeMs: number | null;
  /** Whether the log says that training finished and the process left in order. */
  readonly finished: boolean;
  /** Whether the rank was asked to write a dump, or wrote one. */
  readonly dumpLine: number;
}

/** A process as NCCL's debug log introduces it. */
export interface NcclProcess {
  readonly host: string;
  /** NCCL_HOSTID where the job sets it, else the host. */
  readonly hostId: string;
  readonly pid: number;
  /** Rank in the communicator below. */
  readonly commRank: number;
  readonly commSize: number;
  readonly commId: string;
  readonly gpu: number;
  readonly busId: string;
}
