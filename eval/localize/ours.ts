/** The progressive search on a kept job. */
import { searchProgressively } from "../../src/methods/localize/progressive/progressive.ts";
import type { Split } from "../../src/methods/localize/progressive/source.ts";
import type { Answer } from "./answer.ts";
import { sourceOf, type KeptJob } from "./kept-job.ts";

export function split(job: KeptJob, normal: readonly number[], slow: readonly number[]): Split {
  const ms = (numbers: readonly number[]): number[] => numbers.map((n) => job.iterationMs[n - 1]!);
  return { normal, slow, normalMs: ms(normal), slowMs: ms(slow) };
}

export interface Ours extends Answer {
  /** What it would have named had it not to stand out from the normal iterations. */
  readonly anyway: readonly number[];
  /** As a share of a normal iteration. */
  readonly growth: number;
  readonly hops: number;
}

export function ours(job: KeptJob, normal: readonly number[], slow: readonly number[]): Ours {
  const source = sourceOf(job);
  const given = split(job, normal, slow);
  const { culprit, hops } = searchProgressively(source, job.groups, given, job.simulation.topology);
  const named = culprit?.isSignificant === true;
  return {
    cause: culprit?.cause === "network" ? "network" : "compute",
    ranks: named ? culprit.ranks : [],
    name: culprit?.device?.name ?? `rank ${culprit?.ranks[0]}`,
    // Of the logs of the iterations that are compared.
    share:
      source.bytes / ((source.totalBytes * (normal.length + slow.length)) / job.iterationMs.length),
    anyway: culprit?.ranks ?? [],
    growth: (culprit?.growthMs ?? 0) / given.normalMs[0]!,
    hops,
  };
}
