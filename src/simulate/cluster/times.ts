/** What a simulation yields. */
import type { DeviceState } from "./faults.ts";
import type { Lanes } from "./lanes.ts";
import type { StageProgram } from "./program.ts";
import type { Shares } from "./shares.ts";
import type { ClusterSpec } from "./spec.ts";
import type { Steer } from "./steering.ts";
import type { Topology } from "./topology.ts";

/**
 * Times of one stage's operators, op-major: operator o on lane l at o · lanes + l. Job's clock, ns. An operator of a
 * micro-batch that the lane's replica leaves out (shares.ts) has NaN in all three.
 */
export interface StageTimes {
  /** When the CPU issued it; Infinity where it never did. */
  readonly issueNs: Float64Array;
  /** When its own part began on the GPU; Infinity where it never did. */
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

export interface IterationTimes {
  /** As the log prints it, from 1. */
  readonly iteration: number;
  /** When the iteration before was done on all ranks, and when this one was; Infinity when the job stopped in it. */
  readonly startNs: number;
  readonly endNs: number;
  /** By rank: when it was done with the iteration. */
  readonly rankEndNs: Float64Array;
  readonly stages: readonly StageTimes[];
  /** How many micro-batches replicas took, and where ranks sat: the same objects until somebody steers. */
  readonly shares: Shares;
  readonly topology: Topology;
  /** The devices' state by rank, for the metrics. */
  readonly devices: DeviceState;
}

export interface Simulation {
  readonly spec: ClusterSpec;
  readonly lanes: Lanes;
  /** The unmoved layout, whose ranks faults name. */
  readonly topology: Topology;
  readonly programs: readonly StageProgram[];
  /**
   * Arrays are reused: what is to be kept of an iteration must be copied before the next. `steer` is asked before each
   * iteration, after what came before has been yielded.
   */
  iterations(steer?: Steer): Generator<IterationTimes>;
}
