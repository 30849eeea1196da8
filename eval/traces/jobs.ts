/**
 * Random jobs of the kinds that FLARE's cluster had (§7.3: "popular LLMs, multi-modal LLMs, and recommendation models"),
 * drawn from a seed. Steps are shorter than in the field and stages have fewer layers, so that a trace stays small; how
 * far CPUs run ahead of their GPUs, in steps, is what it is there.
 */
import { pick, type Random } from "../../src/base/random.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";

export const JOB_KINDS = ["megatron", "fsdp", "vision", "recommendation"] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** The profiler skips the first steps, as schedules do. */
export const STEPS: readonly number[] = [3, 4, 5, 6, 7, 8];
const ITERATIONS = 8;
/** CUDA takes 1,024 launches ahead; an operator and the kernels before it are about eight. */
const LAUNCH_QUEUE = 128;

export function drawJob(
  random: Random,
  kind: JobKind,
  leastGpus = 8,
  mostGpus = Infinity,
  gpusPerMachine = 8,
): ClusterSpec {
  const gpus = pick(
    random,
    [8, 16, 16, 32, 64].filter((n) => n >= leastGpus && n <= mostGpus),
  );
  const common = {
    name: kind,
    gpus,
    gpusPerMachine,
    iterations: ITERATIONS,
    launchQueue: LAUNCH_QUEUE,
    issueNs: between(random, 50_000, 160_000),
    placement: 1,
    sharesByFlops: true,
    pythonStacks: random() < 0.4,
    noise: between(random, 0.7, 1.5),
  };
  if (kind === "megatron") {
    const [tp, pp] = pick(random, [
      [2, 1],
      [2, 2],
      [4, 1],
      [4, 2],
      [2, 4],
      [8, 1],
    ] as const);
    if (tp * pp > gpus || tp > gpusPerMachine)
      return drawJob(random, kind, leastGpus, mostGpus, gpusPerMachine);
    return completeSpec({
      ...common,
      tp,
      pp,
      hidden: pick(random, [4096, 8192]),
      sequence: 8192,
      layersPerStage: pp > 2 ? 1 : 2,
      microBatches: 4,
      sequenceParallel: random() < 0.7,
      overlapGradients: random() < 0.7,
      p2pSync: pp > 1 && random() < 0.4,
    });
  }
  const sharded = { tp: 1, pp: 1, dp: gpus, fullyShard: true };
  if (kind === "fsdp" || kind === "vision") {
    return completeSpec({
      ...common,
      ...sharded,
      model: kind === "vision" ? "vision" : "llama",
      hidden: 4096,
      sequence: 8192,
      layersPerStage: pick(random, [3, 4]),
      microBatches: pick(random, [1, 2]),
      imbalance: kind === "vision" ? between(random, 0.3, 0.8) : 0,
    });
  }
  return completeSpec({
    ...common,
    tp: 1,
    pp: 1,
    dp: gpus,
    model: "recommendation",
    hidden: 2048,
    sequence: 16_384,
    layersPerStage: pick(random, [3, 4]),
    microBatches: 1,
    // A third of the step, or so: FLARE's second false positive had a large V_inter in health.
    embeddingNs: between(random, 12e6, 40e6),
  });
}

/** FLARE does not say how many were of which kind; most of what it names are LLMs. */
export function drawJobKind(random: Random): JobKind {
  return pick(random, [
    "megatron",
    "megatron",
    "megatron",
    "fsdp",
    "fsdp",
    "vision",
    "vision",
    "recommendation",
  ] as const);
}

/** Ranks that somebody profiles: neighbours in a machine, replicas of the first, and the other end of the pipeline. */
export function tracedRanks(
  spec: ClusterSpec,
  culprits: readonly number[],
  isWholeJob: boolean,
): number[] {
  const lanes = spec.gpus / spec.pp;
  if (isWholeJob) return Array.from({ length: spec.gpus }, (_, rank) => rank);
  const replicas = [0, spec.tp].filter((rank) => rank < lanes);
  const chosen = new Set([...replicas, 1, spec.gpus - 1, ...culprits.slice(0, 2)]);
  return [...chosen].filter((rank) => rank < spec.gpus).toSorted((a, b) => a - b);
}

export function between(random: Random, low: number, high: number): number {
  return low + (high - low) * random();
}
