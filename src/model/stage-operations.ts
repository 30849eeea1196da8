/**
 * What pipeline stages did, pass by pass, as a tracer inside the framework tells it: forward and backward passes,
 * sends and receives, reductions, the optimizer. Columns, one row an operation, in the order of the file.
 */
import type { Rank } from "./ids.ts";

/** Kinds of operations that a replay knows; a tracer may write others. */
export const OPERATION_KINDS = [
  "forward-compute",
  "backward-compute",
  "forward-send",
  "forward-recv",
  "backward-send",
  "backward-recv",
  "params-all-gather",
  "grads-reduce-scatter",
  "separate-grads-all-reduce",
  "layernorm-grads-all-reduce",
  "embedding-grads-all-reduce",
  "optimizer-clip-main-grad",
  "optimizer",
  "gc",
] as const;

export interface StageOperations {
  readonly file: string;
  readonly format: string;
  /** The rank that wrote the file; null for a file of all ranks. */
  readonly writer: Rank | null;
  /** -1 where unknown. */
  readonly rank: Int32Array;
  /** Data-parallel index; -1 where unknown. */
  readonly replica: Int32Array;
  /** Pipeline stage; -1 where unknown. */
  readonly stage: Int32Array;
  /** Iteration, as printed. */
  readonly step: Int32Array;
  /** Index into `kinds`. */
  readonly kind: Uint8Array;
  /** "forward-compute", "backward-compute", "forward-send", … */
  readonly kinds: readonly string[];
  /** -1 where unknown. */
  readonly microBatch: Int32Array;
  readonly chunk: Int32Array;
  /** Counts the operations of one kind within a step and rank, from 0. */
  readonly seq: Int32Array;
  /** Milliseconds since an origin that all rows of a step share. */
  readonly startMs: Float64Array;
  readonly durationMs: Float64Array;
}
