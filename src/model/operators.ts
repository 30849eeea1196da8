/**
 * The operators of one rank as columns: one typed array a field, one index a record, in the order in
 * which the rank issued them. A job's dumps hold millions of them, so a record never becomes an object.
 */
export const SCHEDULED = 0;
export const STARTED = 1;
export const COMPLETED = 2;

export interface OperatorTable {
  readonly count: number;
  /** Index into the dump's groups. */
  readonly group: Int32Array;
  /** Index into `names`. */
  readonly name: Int32Array;
  /** Sequence number of the collective within its group, from 1; 0 or stale for P2P. */
  readonly seq: Int32Array;
  /** Number of the P2P operator within its group on this rank; does not match the peer's. Those of a batch share it. */
  readonly p2pSeq: Int32Array;
  readonly recordId: Float64Array;
  /** SCHEDULED, STARTED or COMPLETED. */
  readonly state: Uint8Array;
  readonly isP2p: Uint8Array;
  /** Group rank of the other side of a P2P operator; -1 for collectives. */
  readonly peer: Int32Array;
  /** 1 when this rank sends, 0 when it receives; meaningless for collectives. */
  readonly isSend: Uint8Array;
  /** Nanoseconds since the dump's epoch; NaN where the dump has none. */
  readonly createdNs: Float64Array;
  readonly startedNs: Float64Array;
  readonly completedNs: Float64Array;
  /** NaN where unknown. Of a batch of P2P operators one has the duration of all, the others have 0. */
  readonly durationMs: Float32Array;
  /** Elements over all input (output) tensors. */
  readonly inputNumel: Float64Array;
  readonly outputNumel: Float64Array;
  /** Index into `dtypes`; -1 where the dump has none. */
  readonly dtype: Int32Array;
  /** Operator names without the library's prefix: "all_reduce", "send 0->1". */
  readonly names: readonly string[];
  readonly dtypes: readonly string[];
}

/** One line of a Python call stack. */
export interface Frame {
  readonly func: string;
  readonly file: string;
  /** 0 where unknown. */
  readonly line: number;
}

/** What a rank's dump says of one process group. Counters are -1 where unknown. */
export interface DumpGroup {
  readonly name: string;
  readonly desc: string;
  /** Global ranks in group order; null where the dump does not say (Gloo leaves pg_config empty). */
  readonly ranks: readonly number[] | null;
  /**
   * Where the writer stands in it, for sources that know no other member (probe rings): all that name the same group
   * is a member, and `ranks` follows once all have spoken.
   */
  readonly own?: { readonly groupRank: number; readonly size: number };
  readonly enqueued: number;
  readonly started: number;
  readonly completed: number;
}

/** One rank's flight-recorder dump. */
export interface FlightDump {
  readonly file: string;
  readonly version: string;
  readonly groups: readonly DumpGroup[];
  readonly ops: OperatorTable;
  /** Nanoseconds since 1970 that the ops' times are relative to. */
  readonly epochNs: bigint;
  /** Whether the job recorded when operators start on the GPU (TORCH_NCCL_ENABLE_TIMING). */
  readonly timing: boolean;
  /** The longest timeout of its operators; 0 where the dump does not say. */
  readonly timeoutMs: number;
  /** Whether the file was cut off: its last entries, the ones that matter, are lost. */
  readonly isCut: boolean;
  /** When it was taken, in the ops' time, where it tells. */
  readonly takenNs?: number;
  /** Operators whose end nobody timed: they count as completed, and whether the last of them hangs is open. */
  readonly unknownEnds?: number;
  /** Whether completed operators were left out when it was written: a group without entries has none pending. */
  readonly onlyActive?: boolean;
  /** Python stacks, innermost frame first, of the operators a report may name; by record index. */
  readonly frames: ReadonlyMap<number, readonly Frame[]>;
}

/**
 * The operators of one rank out of another source than the flight recorder: only those that came to an end,
 * so that what it lacks proves nothing about a hang.
 */
export interface OperatorLog {
  readonly file: string;
  readonly format: string;
  readonly rank: number | null;
  /** "" and null where the source does not say. */
  readonly host: string;
  readonly pid: number | null;
  readonly groups: readonly DumpGroup[];
  readonly ops: OperatorTable;
  /** Nanoseconds since 1970 that the ops' times are relative to. */
  readonly epochNs: bigint;
  /** Whether `ops.seq` is the same number on all members of a group; else it counts from where the record begins. */
  readonly hasSequence: boolean;
}
