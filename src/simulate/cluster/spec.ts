/**
 * What a simulated job is made of. Sizes default to a Llama-like model on H100 machines; every default
 * that imitates reality says where its number comes from.
 */
import { UserError } from "../../base/errors.ts";
import type { FaultSpec } from "./fault-spec.ts";

export type ScheduleName = "1f1b" | "interleaved" | "gpipe";

/** What is trained: it decides which kernels a layer has. */
type ModelName = "llama" | "vision" | "recommendation";

export interface ClusterSpec {
  readonly name: string;
  readonly gpus: number;
  readonly tp: number;
  readonly pp: number;
  readonly dp: number;
  /** Experts are spread over this many data-parallel ranks; 1 for a dense model. */
  readonly ep: number;
  /** Context parallelism: one sequence over this many ranks. */
  readonly cp: number;
  readonly microBatches: number;
  readonly schedule: ScheduleName;
  /** Model chunks of a stage under the interleaved schedule. */
  readonly chunks: number;
  /** Transformer layers of one stage (over all its chunks). */
  readonly layersPerStage: number;
  readonly hidden: number;
  readonly sequence: number;
  /** Gather and scatter around each block instead of an all-reduce after it. */
  readonly sequenceParallel: boolean;
  /** Gradient reduction overlaps the last backward pass. */
  readonly overlapGradients: boolean;
  readonly model: ModelName;
  /** FSDP: parameters are gathered layer by layer, one ahead, and gradients scattered; data parallel only. */
  readonly fullyShard: boolean;
  /** How far the images of a micro-batch spread its compute, 0..1 (noise.ts, imageFactor). */
  readonly imbalance: number;
  /** CPU time of a lookup in embeddings that live in host memory, before each micro-batch; 0: on the GPU. */
  readonly embeddingNs: number;
  /** CPU time to issue the kernels up to and including one operator. */
  readonly issueNs: number;
  /** Operators that the CPU may be ahead of its GPU; 0: any number. */
  readonly launchQueue: number;
  /** The CPU waits for the GPU at each receive, as Megatron's batch_p2p_sync has it. */
  readonly p2pSync: boolean;
  /** How much one run differs from the next because it got other machines: 0 not at all, 1 as assumed in faults.ts. */
  readonly placement: number;
  /**
   * Attention and feed-forward take what their operations take, at any length of sequence; where not, 0.34 and 0.62 of
   * a layer, which is right for sequences of a quarter of the hidden size.
   */
  readonly sharesByFlops: boolean;
  /** Traces have Python functions in them (with_stack). */
  readonly pythonStacks: boolean;
  readonly iterations: number;
  readonly seed: number;
  readonly gpusPerMachine: number;
  /** Machines under one leaf switch of a rail. */
  readonly machinesPerLeaf: number;
  readonly spines: number;
  /** 0: none, 1: as in the field (noise.ts). */
  readonly noise: number;
  /** Share of the ranks whose flight-recorder dump is lost or cut off. */
  readonly lost: number;
  readonly faults: readonly FaultSpec[];
  /** Nanoseconds since 1970 at which the job starts. */
  readonly epochNs: bigint;
}

export const DEFAULT_SPEC: ClusterSpec = {
  name: "simulated",
  gpus: 16,
  tp: 2,
  pp: 2,
  dp: 4,
  ep: 1,
  cp: 1,
  microBatches: 8,
  schedule: "1f1b",
  chunks: 2,
  layersPerStage: 4,
  hidden: 4096,
  sequence: 4096,
  sequenceParallel: true,
  overlapGradients: true,
  model: "llama",
  fullyShard: false,
  imbalance: 0,
  embeddingNs: 0,
  issueNs: 30_000,
  launchQueue: 0,
  p2pSync: false,
  placement: 0,
  sharesByFlops: false,
  pythonStacks: false,
  iterations: 20,
  seed: 1,
  gpusPerMachine: 8,
  machinesPerLeaf: 32,
  spines: 4,
  noise: 1,
  lost: 0,
  faults: [],
  // 2026-11-15T00:00:00Z
  epochNs: 1_794_700_800_000_000_000n,
};

const MAX_GPUS = 1 << 18;
const HINT = "see faultline simulate --help";

/** Fills the defaults in and refuses what cannot be. */
export function completeSpec(given: Partial<ClusterSpec>): ClusterSpec {
  const { tp, pp, dp, cp } = given;
  const spec = { ...DEFAULT_SPEC, ...withoutUndefined(given) };
  const whole: [string, number, number][] = [
    ["gpus", spec.gpus, 1],
    ["tp", spec.tp, 1],
    ["pp", spec.pp, 1],
    ["dp", spec.dp, 1],
    ["ep", spec.ep, 1],
    ["cp", spec.cp, 1],
    ["micro-batches", spec.microBatches, 1],
    ["iterations", spec.iterations, 1],
    ["layers", spec.layersPerStage, 1],
    ["gpus-per-machine", spec.gpusPerMachine, 1],
  ];
  for (const [name, value, least] of whole) {
    if (!Number.isSafeInteger(value) || value < least) {
      throw new UserError(
        `--${name} must be a whole number of at least ${least}, not ${value}`,
        HINT,
        2,
      );
    }
  }
  if (!(spec.noise >= 0 && spec.noise <= 100)) {
    throw new UserError(`--noise must be a number from 0 to 100, not ${spec.noise}`, HINT, 2);
  }
  if (!(spec.lost >= 0 && spec.lost <= 1)) {
    throw new UserError(`--lost must be a share from 0 to 1, not ${spec.lost}`, HINT, 2);
  }
  if (!Number.isSafeInteger(spec.seed) || spec.seed < 0 || spec.seed >= 2 ** 32) {
    throw new UserError(
      `--seed must be a whole number from 0 to ${2 ** 32 - 1}, not ${spec.seed}`,
      HINT,
      2,
    );
  }
  if (spec.gpus > MAX_GPUS || spec.tp * spec.pp * spec.dp * spec.cp > MAX_GPUS) {
    throw new UserError(`more than ${MAX_GPUS} GPUs are not simulated`, HINT, 2);
  }
  const shape = { tp: spec.tp, pp: spec.pp, dp: spec.dp, cp: spec.cp, gpus: spec.gpus };
  // What was not given follows from what was: gpus from the dimensions, or dp from gpus.
  if (given.gpus === undefined) shape.gpus = shape.tp * shape.pp * shape.dp * shape.cp;
  else if (dp === undefined) {
    if (tp === undefined) shape.tp = largestDivisor(shape.gpus, shape.tp);
    if (pp === undefined) shape.pp = largestDivisor(shape.gpus / shape.tp, shape.pp);
    if (cp === undefined) shape.cp = 1;
    shape.dp = shape.gpus / (shape.tp * shape.pp * shape.cp);
  }
  const product = shape.tp * shape.pp * shape.dp * shape.cp;
  if (dp === undefined && !Number.isInteger(shape.dp)) {
    throw new UserError(
      `${shape.gpus} GPUs cannot be divided into tp ${shape.tp} × cp ${shape.cp} × pp ${shape.pp}`,
      `tp × cp × pp must divide the number of GPUs; its divisors are ${divisors(shape.gpus).join(", ")}`,
      2,
    );
  }
  if (product !== shape.gpus) {
    const dims = `tp ${shape.tp} × cp ${shape.cp} × dp ${shape.dp} × pp ${shape.pp}`;
    const hint = `tp × cp × dp × pp must be the number of GPUs; omit --dp to have it computed`;
    throw new UserError(`${dims} is ${product}, not ${shape.gpus} GPUs`, hint, 2);
  }
  const complete: ClusterSpec = { ...spec, ...shape };
  if ((complete.dp * complete.cp) % complete.ep !== 0) {
    throw new UserError(
      `--ep ${complete.ep} does not divide dp × cp = ${complete.dp * complete.cp}`,
      `allowed: ${divisors(complete.dp * complete.cp).join(", ")}`,
      2,
    );
  }
  if (complete.fullyShard && complete.dp !== complete.gpus) {
    throw new UserError("a fully sharded job is data parallel only", "tp, pp and cp must be 1", 2);
  }
  if (!["1f1b", "interleaved", "gpipe"].includes(complete.schedule)) {
    throw new UserError(
      `--schedule ${complete.schedule} is unknown`,
      "allowed: 1f1b, interleaved, gpipe",
      2,
    );
  }
  if (complete.schedule === "interleaved") {
    if (complete.pp === 1)
      throw new UserError("the interleaved schedule needs --pp of at least 2", HINT, 2);
    if (complete.microBatches % complete.pp !== 0) {
      const hint = `allowed: multiples of ${complete.pp}`;
      throw new UserError(
        `the interleaved schedule needs --micro-batches to be a multiple of --pp`,
        hint,
        2,
      );
    }
    if (complete.layersPerStage < complete.chunks)
      return { ...complete, layersPerStage: complete.chunks };
  }
  return complete;
}

function withoutUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

function divisors(n: number): number[] {
  const all: number[] = [];
  for (let d = 1; d <= n; d++) if (n % d === 0) all.push(d);
  return all;
}

function largestDivisor(n: number, most: number): number {
  for (let d = Math.min(Math.floor(n), most); d > 1; d--) if (n % d === 0) return d;
  return 1;
}
