/**
 * What a rank prints before its first iteration: Megatron's own words (megatron/training/initialize.py,
 * training.py, checkpointing.py), c10d's with TORCH_CPP_LOG_LEVEL=INFO and NCCL's with NCCL_DEBUG=INFO.
 * Wording and order as in the lab's recording hang3.
 */
import type { Simulation } from "../../cluster/times.ts";
import { hash, STREAM, uniform } from "../../cluster/noise.ts";
import { busOf } from "../pci.ts";
import type { Membership } from "./memberships.ts";
import { SITE, type RankFile } from "./rank-file.ts";

/** How long before the first iteration a job begins to print. */
const STARTUP_NS = 95e9;
export const NCCL_VERSION = "2.28.9";
export const TIMEOUT_MS = 600_000;
export const CHECKPOINTS = "/srv/checkpoints";

export function writeStartup(
  simulation: Simulation,
  file: RankFile,
  joined: readonly Membership[],
): void {
  const { spec, lanes } = simulation;
  const { rank } = file;
  let now = -STARTUP_NS + 4e8 * uniform(spec.seed ^ STREAM.logs, rank, 1, 0);
  const later = (ns: number, step: number): number =>
    (now += ns * (0.9 + 0.2 * uniform(spec.seed ^ STREAM.logs, rank, 2, step)));

  file.info(now, `initializing torch distributed, world size ${spec.gpus}`);
  if (rank === 0) megatronBanner(simulation, file);
  const world = joined[0]!;
  const commId = hex(hash(spec.seed ^ STREAM.logs, 3, 0, 0)) + hex(hash(spec.seed, 3, 1, 0));
  joined.forEach((membership, id) => {
    const { group, groupRank, tag } = membership;
    const source = "ProcessGroupNCCL.cpp:988";
    const bare = `[PG ID ${id} PG GUID ${group.name} Rank ${groupRank}]`;
    const options = `size: ${group.ranks.length}, global rank: ${rank}, TIMEOUT(ms): ${TIMEOUT_MS}, USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: ${id === 0 ? 0 : 1}, SPLIT_COLOR: ${id === 0 ? -2 : hash(spec.seed, group.index, 5, 0) >>> 1}, PG Name: ${group.name}`;
    file.c10d(
      later(1.5e7, id),
      "I",
      source,
      `${bare} ProcessGroupNCCL initialization options: ${options}`,
    );
    file.c10d(
      later(6e5, 20 + id),
      "I",
      "ProcessGroupNCCL.cpp:1068",
      `${tag} Using non-blocking mode: 0`,
    );
    if (membership === world) {
      file.nccl(`NCCL version ${NCCL_VERSION}+cuda13.0`);
      const comm = `0x${hex(hash(spec.seed ^ STREAM.logs, rank, 4, 0))}`;
      file.nccl(
        `ncclCommInitRankConfig comm ${comm} rank ${rank} nranks ${spec.gpus} cudaDev ${file.gpu} nvmlDev ${file.gpu} busId ${busOf(file.gpu)}000 commId 0x${commId} - Init COMPLETE`,
      );
    }
  });
  const lane = rank % lanes.lanes;
  const stage = Math.floor(rank / lanes.lanes);
  const tp = lane % spec.tp;
  const dp = Math.floor(lane / (spec.tp * spec.cp));
  file.info(later(4e8, 40), `parallel layout tp=${tp} dp=${dp} pp=${stage}`);
  if (rank === 0) file.plain("building GPT model ...");
  file.info(later(6e9, 41), "building model");
  if (dp === 0) {
    const parameters = Math.round((12 * spec.hidden ** 2 * spec.layersPerStage) / spec.tp);
    file.plain(
      ` > number of parameters on (tensor, pipeline) model parallel rank (${tp}, ${stage}): ${parameters}`,
    );
  }
  file.info(later(2e9, 42), `loading checkpoint from ${CHECKPOINTS}/base`);
  if (rank === 0) {
    file.plain(
      `  successfully loaded checkpoint from ${CHECKPOINTS}/base [ t 1/${spec.tp}, p 1/${spec.pp} ] at iteration 0`,
    );
  }
  file.plain(
    `${SITE}/torch/autograd/graph.py:869: UserWarning: Attempting to run cuBLAS, but there was no current CUDA context! Attempting to set the primary context... (Triggered internally at /pytorch/aten/src/ATen/cuda/CublasHandlePool.cpp:335.)`,
  );
  file.plain(
    "  return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass",
  );
  file.info(-1e7 * (1 + uniform(spec.seed ^ STREAM.logs, rank, 2, 43)), "training starts");
}

function megatronBanner({ spec }: Simulation, file: RankFile): void {
  file.plain(
    `using world size: ${spec.gpus}, data-parallel size: ${spec.dp}, context-parallel size: ${spec.cp}, hierarchical context-parallel sizes: None, tensor-model-parallel size: ${spec.tp}, pipeline-model-parallel size: ${spec.pp}`,
  );
  file.plain("> initializing torch distributed ...");
  file.plain(`> initialized tensor model parallel with size ${spec.tp}`);
  file.plain(`> initialized pipeline model parallel with size ${spec.pp}`);
  file.plain("> setting random seeds to 1234 ...");
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
