/** Jobs small enough to read whole, for tests: what the search over all ranks sees in them. */
import { growth, iterationsOf } from "../../src/methods/localize/progressive/series.ts";
import { rankWaits } from "../../src/methods/localize/progressive/rank-waits.ts";
import type { Split } from "../../src/methods/localize/progressive/source.ts";
import type { Waits } from "../../src/methods/localize/wait-search.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { sourceOf, type KeptJob } from "./kept-job.ts";

export function drawSmallCase(gpus: number, fault: string, seed: number): ClusterSpec {
  return completeSpec({
    gpus,
    tp: 4,
    pp: gpus >= 128 ? 4 : 2,
    machinesPerLeaf: 4,
    microBatches: 8,
    layersPerStage: 2,
    hidden: 8192,
    iterations: 12,
    seed,
    faults: fault === "" ? [] : [parseFault(fault)],
  });
}

/** Everybody's waiting, every operator read. */
export function waitsOfAll(job: KeptJob, split: Split): Map<number, Waits> {
  const source = sourceOf(job);
  const series = Float64Array.from(iterationsOf(split), (n) => job.iterationMs[n - 1]!);
  const all = new Map<number, Waits>();
  for (let rank = 0; rank < source.worldSize; rank++) {
    const { waits } = rankWaits(source, rank, split, Infinity);
    const grown = (wanted: boolean): Map<number, number> =>
      new Map(waits.filter(({ isGroup }) => isGroup === wanted).map((w) => [w.of, w.growthMs]));
    const growthMs = growth(series, split);
    all.set(rank, { rank, groups: grown(true), receives: grown(false), growthMs });
  }
  return all;
}
