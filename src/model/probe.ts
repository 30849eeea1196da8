/**
 * What a probe inside a training process left in its ring (probe/RING.md), beside operators (`FlightDump`) and kernels
 * (`RankKernels`). Times are nanoseconds since `epochNs`.
 */
import type { Rank } from "./ids.ts";

/** States of a proxy step, NCCL's numbers: what the step waits for. */
export const SEND_WAITS_FOR_GPU = 8;
export const SEND_WAITS_FOR_PEER = 20;
export const SEND_WAITS_FOR_WIRE = 9;
export const RECEIVE_WAITS_FOR_DATA = 10;
export const RECEIVE_WAITS_FOR_FLUSH = 11;
export const RECEIVE_WAITS_FOR_GPU = 12;

/** What the proxy of one process knows of each direction to each peer in each channel. */
export interface ConnectionTable {
  readonly count: number;
  /** Index into the process' `communicators`. */
  readonly communicator: Int32Array;
  readonly channel: Uint8Array;
  readonly isSend: Uint8Array;
  /** Rank of the other side in the communicator. */
  readonly peer: Int32Array;
  /** Steps begun and finished since the communicator was made: comparable between the two sides. */
  readonly begun: Float64Array;
  readonly finished: Float64Array;
  /** What the oldest unfinished step waits for; 0 where none is on its way. */
  readonly state: Uint8Array;
  readonly changedNs: Float64Array;
}

export interface Communicator {
  /** The same on all members. */
  readonly id: string;
  readonly name: string;
  /** Rank of this process in it. */
  readonly rank: number;
  readonly size: number;
  readonly collectives: number;
  readonly p2ps: number;
  readonly isDestroyed: boolean;
}

/** Kinds of host calls. */
export const PYTHON_CALL = 0;
export const COLLECTION = 1;
export const ITERATION = 2;

/** What Python did: traced functions, garbage collections, iterations. In the order of their starts. */
export interface HostCalls {
  readonly count: number;
  readonly kind: Uint8Array;
  /** Index into `names`; -1 for collections and iterations. */
  readonly name: Int32Array;
  readonly startNs: Float64Array;
  /** NaN while it goes on. */
  readonly endNs: Float64Array;
  readonly thread: Float64Array;
  /** Generation of a collection, number of an iteration, depth of a call. */
  readonly detail: Float64Array;
  /** As traced: "torch.cuda@synchronize". */
  readonly names: readonly string[];
}

/** One ring. */
export interface ProbeProcess {
  readonly file: string;
  readonly rank: Rank | null;
  readonly worldSize: number;
  readonly host: string;
  readonly pid: number;
  readonly gpu: number | null;
  readonly writer: "native" | "python";
  readonly job: string;
  readonly library: string;
  /** Nanoseconds since 1970. */
  readonly epochNs: bigint;
  readonly startedNs: number;
  /** When the ring was copied; NaN for a ring that nobody dumped (then the newest time in it stands for it). */
  readonly copiedNs: number;
  /** Last sign of life of the probe's own thread; NaN where there is none. */
  readonly heartbeatNs: number;
  /** R, S, D, T, t, Z; X where the process was gone; "" where nobody looked. */
  readonly state: string;
  /** Kernel function that it waited in; "" where unknown. */
  readonly waitsIn: string;
  readonly ended: {
    readonly how: "exit" | "exception" | "signal";
    readonly code: number;
    readonly atNs: number;
  } | null;
  /** Traceback or the signal's name; "" where there are none. */
  readonly words: string;
  readonly communicators: readonly Communicator[];
  readonly connections: ConnectionTable;
  readonly calls: HostCalls;
  /** Records that were lost: overwritten before anybody read them is normal and not counted here. */
  readonly dropped: number;
}

/** What a traced function is for, by its name; null where it is none of these. */
export type CallPurpose = "dataloader" | "synchronization" | "garbage-collection" | "communication";

export function callPurpose(name: string): CallPurpose | null {
  if (/^gc(?:$|@)/.test(name)) return "garbage-collection";
  // A collective that blocks waits for others: a rank that is in one does not block others.
  if (/^torch\.distributed(?:\.[\w.]+)?@/.test(name)) return "communication";
  if (/synchronize|@(?:Tensor\.)?(?:item|tolist|cpu|nonzero)$|Event\.wait/.test(name))
    return "synchronization";
  if (/DataLoader|dataload|DataIter|__next__|Dataset|Sampler|collate/i.test(name))
    return "dataloader";
  return null;
}
