/** Monitoring samples as exporters gave them: raw and never resampled, so that absence stays visible. */

import type { NameClaim, NameLink } from "./machine-names.ts";

/** unknown: the exporter does not say (node_exporter's ethtool collector, tables). */
export type MetricType = "gauge" | "counter" | "unknown";

/** All series of one exporter's metric, as columns. */
export interface MetricSamples {
  /** As the exporter names it: "DCGM_FI_DEV_GPU_UTIL". */
  readonly name: string;
  readonly type: MetricType;
  /** By series: index into `MetricSet.machines`. */
  readonly machine: Int32Array;
  /** By series: "gpu3", "mlx5_0/1", "" for the machine as a whole. No two of a machine are alike. */
  readonly device: readonly string[];
  /** Series s has the samples start[s] … start[s + 1] - 1. */
  readonly start: Uint32Array;
  /** Unix seconds (any origin in files that have none), strictly ascending within a series. */
  readonly timeS: Float64Array;
  /** Finite: stale markers, blanks and infinities are left out. */
  readonly value: Float64Array;
}

/** What was monitored of a job's machines. Plain data, so that it can cross to another thread. */
export interface MetricSet {
  /** Names without port, sorted. */
  readonly machines: readonly string[];
  /** By machine: its GPUs' model, where a label tells. */
  readonly hardware: readonly (string | null)[];
  readonly samples: readonly MetricSamples[];
  /** By machine: what else labels of its series call it; absent where the source has no labels. */
  readonly claims?: readonly (readonly NameClaim[])[];
  /** What info metrics say of names. */
  readonly links?: readonly NameLink[];
  /** The file ends in the middle: samples that are not there may have been. */
  readonly isCut?: boolean;
}
