/** What makes a run slower than healthy ones, as `faultline trace` and the verdict tell it. */
import type { Cause, Owner } from "./cause.ts";
import type { Place, Rank } from "./ids.ts";

export type TraceMetric =
  | "throughput"
  | "flops"
  | "bandwidth"
  | "issueLatency"
  | "vInter"
  | "vMinority";

export interface Regression {
  readonly cause: Cause;
  readonly owner: Owner;
  readonly ranks: readonly Rank[];
  readonly metric: TraceMetric;
  /** In the metric's unit: TFLOPS, GB/s, milliseconds of distance, shares of the step. */
  readonly value: number;
  /** The healthy level in the same unit; of issue latencies the largest distance between healthy runs. */
  readonly baseline: number;
  /** Share of the step that it takes more than when healthy, 0..1; where ranks wait anyway, it costs less than that. */
  readonly share: number;
  readonly why: string;
  /** A step of the run and of its baseline, milliseconds; absent without a baseline. */
  readonly stepMs?: readonly [own: number, baseline: number];
  /** The call or the line of code that takes the time, and how often it runs in a step now and when healthy. */
  readonly call?: string;
  readonly calls?: readonly [now: number, healthy: number];
  readonly at: readonly Place[];
  /** Which threshold was crossed, and how it was learnt. */
  readonly threshold: string;
  /** 0..1: how much one would bet on it. */
  readonly weight: number;
}

/** What can grow in a running job; "products" are traced matrix products of the same shapes, "transfers" collectives of the same sizes. */
export type GrownPart =
  | "dataloader"
  | "garbage-collection"
  | "synchronization"
  | "products"
  | "own"
  | "transfers";

/** What made a running job slower, as its agents' summaries show it. */
export interface FoundRegression {
  readonly cause: Cause;
  readonly part: GrownPart;
  readonly sinceMs: number;
  readonly stepMs: number;
  readonly healthyStepMs: number;
  /** Of the part: a tenth of the ranks spends more; of products and transfers what one takes. */
  readonly partMs: number;
  readonly healthyPartMs: number;
  /** Machines on which the part grew, of those that have it. */
  readonly machines: number;
  readonly of: number;
  /** Of "own": whether products of the same shapes show that the job does the same work as before. */
  readonly isSameWork?: boolean;
}

/**
 * Who gets what (FLARE, Table 1, §5.2.3, §5.2.4, §7.3): a Python call that was found goes to the algorithm team, kernels,
 * layouts and the allocator to infrastructure, hardware to operations; a stall without a call to infrastructure.
 */
export const REGRESSION_OWNERS: Partial<Readonly<Record<Cause, Owner>>> = {
  "garbage-collection": "algorithm",
  synchronization: "algorithm",
  dataloader: "algorithm",
  "user-program": "algorithm",
  "cpu-stall": "infrastructure",
  "memory-management": "infrastructure",
  "minority-kernels": "infrastructure",
  "gemm-layout": "infrastructure",
  "slow-kernel": "infrastructure",
  "gpu-slow": "operations",
  "network-slow": "operations",
};
