import type { Rank } from "../../model/ids.ts";
import { COMPLETED } from "../../model/operators.ts";
import { isP2p, type Op } from "./op.ts";

export type Role = "default" | "tp" | "cp" | "dp" | "pp" | "embedding" | "expert" | "unused";

/** A process group; its index in the job's list is also its name, because names count creations. */
export interface SimGroup {
  readonly index: number;
  readonly name: string;
  readonly desc: string;
  readonly role: Role;
  /** Global ranks in group order. */
  readonly ranks: readonly Rank[];
}

/** Counters of one group on one rank, as the watchdog keeps them; -1 where it saw nothing. */
export interface GroupStatus {
  enqueued: number;
  started: number;
  completed: number;
}

/** What one rank's flight recorder holds when it is dumped, with timing on and nothing overwritten. */
export interface RankRecords {
  readonly rank: number;
  /** record_id of the first one: how many were overwritten before. */
  readonly firstId: number;
  /** Operators issued, in program order; the columns below run parallel to them. */
  readonly ops: readonly Op[];
  readonly seq: Int32Array;
  readonly p2pSeq: Int32Array;
  readonly opId: Int32Array;
  /** SCHEDULED, STARTED or COMPLETED. */
  readonly state: Uint8Array;
  /** Nanoseconds since the job's epoch by the rank's own clock; NaN where nothing was seen. */
  readonly createdNs: Float64Array;
  readonly startedNs: Float64Array;
  readonly completedNs: Float64Array;
  readonly durationMs: Float32Array;
  /** By group index, only groups in which the rank issued something. */
  readonly status: ReadonlyMap<number, GroupStatus>;
}

/**
 * Whether its sends and receives can have been batches: a group's batches end in the order of issue, while sends of
 * their own may wait for a receiver that others have overtaken.
 */
export function canBeBatched({ ops, state }: RankRecords): boolean {
  const pending = new Set<number>();
  return ops.every((op, i) => {
    if (!isP2p(op)) return true;
    if (state[i] !== COMPLETED) pending.add(op.group);
    return state[i] !== COMPLETED || !pending.has(op.group);
  });
}
