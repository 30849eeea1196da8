/** Operators of single ranks, cut into iterations, handed out when asked for: a large job's are never all needed. */
import type { Rank } from "./ids.ts";
import type { OperatorTable } from "./operators.ts";

export interface RankOperators {
  readonly rank: Rank;
  readonly file: string;
  readonly ops: OperatorTable;
  /** Nanoseconds since 1970 that the operators' times are relative to. */
  readonly epochNs: bigint;
  /** Operator's group → the job's; -1 where the members are unknown. */
  readonly groupIds: Int32Array;
  /** Whether `ops.seq` is the same number on all members of a group; else it counts from where the record begins. */
  readonly hasSequence: boolean;
  /** Number of each iteration, as a log prints it; ascending. */
  readonly iteration: Float64Array;
  /** First operator of each iteration, and the one behind its last. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  /** Milliseconds from the issue of its first operator to the issue of the next iteration's. */
  readonly durationMs: Float64Array;
  /** When its first operator was issued, milliseconds since 1970. */
  readonly startMs: Float64Array;
}

export interface RankOperatorSource {
  /** Ranks that left operators, ascending. */
  readonly ranks: readonly Rank[];
  /** null where the rank's operators do not repeat, or carry no time. */
  fetch(rank: Rank): RankOperators | null;
}
