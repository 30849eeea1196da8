/**
 * What one rank measured when the job was asked to test its GPUs and links (Greyhound §4.3). A rank reports its own
 * products and the transfers that it received.
 */
import type { Rank } from "./ids.ts";

export interface GemmTest {
  /** "bfloat16". */
  readonly dtype: string;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** One a repeat. */
  readonly ms: readonly number[];
}

export interface TransferTest {
  readonly topology: "ring" | "tree" | "rail";
  /** 0-based; transfers of one pass run at the same time and share no rank. */
  readonly pass: number;
  /** Global ranks. */
  readonly from: Rank;
  readonly to: Rank;
  readonly bytes: number;
  readonly ms: readonly number[];
  /** Where it was tested after several iterations: after which of them. */
  readonly iteration?: number;
}

export interface ValidationReport {
  readonly file: string;
  readonly rank: Rank;
  readonly host: string;
  /** "NVIDIA H200", "cpu". */
  readonly device: string;
  /** Iteration after which it was run; null where the job was not iterating. */
  readonly iteration: number | null;
  readonly timeMs: number | null;
  /** How long the job waited for it, where the report says so. */
  readonly tookMs?: number;
  /** Who took part, in group order. */
  readonly group: readonly Rank[];
  readonly gemm: readonly GemmTest[];
  readonly transfers: readonly TransferTest[];
}
