/** When and in which operator the job stopped: what logs, stacks and metrics of one job must agree on. */
import type { IterationTimes, Simulation } from "../../../src/simulate/cluster/times.ts";

export interface Moment {
  /** Of the iteration that did not end; the last one where all ended. */
  readonly iteration: number;
  readonly startNs: number;
  /** Job's clock, when nothing moved any more, or when the last iteration was over. */
  readonly stopNs: number;
  /** Index of the operator in its program at which a rank's GPU stopped; -1 where it did not. */
  readonly gpuEndsAt: (rank: number) => number;
  /** When the rank's CPU issued its last operator. */
  readonly lastIssueNs: (rank: number) => number;
}

export function momentOf({ lanes }: Simulation, times: IterationTimes): Moment {
  const { iteration, startNs, stages, devices } = times;
  let stopNs = startNs;
  for (const { endNs } of stages)
    for (const end of endNs) if (end > stopNs && end < Infinity) stopNs = end;
  const issued = stages.map(({ issueNs }) => issueNs.slice());
  const gpuEnds = devices.gpuEnds.slice();
  return {
    iteration,
    startNs,
    stopNs,
    gpuEndsAt: (rank) => (gpuEnds[rank]! < 0x7fffffff ? gpuEnds[rank]! : -1),
    lastIssueNs(rank) {
      const column = issued[Math.floor(rank / lanes.lanes)]!;
      let last = startNs;
      for (let at = rank % lanes.lanes; at < column.length; at += lanes.lanes)
        if (column[at]! > last && column[at]! < Infinity) last = column[at]!;
      return last;
    },
  };
}
