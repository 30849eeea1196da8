/**
 * The last iterations of all ranks of a running job, as their agents reported them: columns, iteration-major, rank k of
 * iteration i at i · ranks + k. NaN where a rank has not reported.
 */
import type { Rank } from "./ids.ts";

export interface LivePoints {
  /** Numbers of iterations, ascending. */
  readonly iterations: Float64Array;
  readonly ranks: readonly Rank[];
  readonly durationMs: Float32Array;
  /** Inside collectives, sends, receives. */
  readonly collectiveMs: Float32Array;
  readonly sendMs: Float32Array;
  readonly recvMs: Float32Array;
  /** From the CPU's first call of an operator to its last. */
  readonly issueMs: Float32Array;
}
