/**
 * "kineto/kineto.rankN.json": Chrome traces as torch.profiler writes them, of chosen ranks and steps
 * only; a trace of one step of one rank is some megabytes. A step in which the job stops leaves none,
 * as a profiler that is never stopped writes nothing.
 */
import { clusterGroups } from "../cluster/groups.ts";
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import type { Topology } from "../cluster/topology.ts";
import type { Emitter, Output } from "./emitter.ts";
import { checkRanks, chooseRanks, chooseSteps } from "./kineto/choose.ts";
import { RankTrace } from "./kineto/rank-trace.ts";
import { OperatorCounts } from "./operator-counts.ts";

export interface KinetoOptions {
  /** Rank 0, the suspects and one healthy peer where not given. */
  readonly ranks?: readonly number[];
  /** Iterations as the log prints them; one before the first fault and one inside it where not given. */
  readonly steps?: readonly number[];
}

export function emitKineto(
  simulation: Simulation,
  output: Output,
  options: KinetoOptions = {},
): Emitter {
  const ranks = options.ranks ?? chooseRanks(simulation);
  checkRanks(ranks, simulation.spec.gpus);
  const steps = new Set(options.steps ?? chooseSteps(simulation));
  const counts = new OperatorCounts(simulation);
  let traces: RankTrace[] | null = null;
  const open = (topology: Topology): RankTrace[] => {
    const groups = clusterGroups(simulation);
    return ranks.map((rank) => {
      const path = `kineto/kineto.rank${rank}.json`;
      return new RankTrace(simulation, groups, topology, rank, path, output.open(path));
    });
  };
  return {
    iteration(times: IterationTimes): void {
      if (steps.has(times.iteration) && times.endNs !== Infinity) {
        traces ??= open(times.topology);
        for (const trace of traces) trace.step(times, counts);
      }
      counts.add(times.shares);
    },
    end(): void {
      for (const trace of traces ?? []) trace.end();
    },
  };
}
