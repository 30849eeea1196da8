/**
 * "logs/rankN.log": what the processes of a Megatron-LM job print, each by the clock of its machine, and
 * "logs/dmesg.<machine>.log" where hardware broke. Which ranks are written: ranksOfInterest.
 */
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import { isEnding, faultRanks } from "../cluster/faults.ts";
import { clusterGroups, type ClusterGroups } from "../cluster/groups.ts";
import { hash, STREAM, uniform } from "../cluster/noise.ts";
import type { Emitter, Output } from "./emitter.ts";
import { endingsAt, writeEnding } from "./logs/ending.ts";
import { KernelLogs } from "./logs/kernel-log.ts";
import { membershipsOf } from "./logs/memberships.ts";
import { RankFile, SITE } from "./logs/rank-file.ts";
import { CHECKPOINTS, writeStartup } from "./logs/startup.ts";
import { linkEnds } from "../cluster/links.ts";
import { WORLD } from "../cluster/program.ts";
import type { ClusterSpec } from "../cluster/spec.ts";

const WARM_UP_ITERATIONS = 100;
const PEAK_RATE = 3e-4;

const ALL_UP_TO = 1024;
const PEERS_OF_A_GROUP = 64;

export interface LogOptions {
  /** Iterations between checkpoints, which are written in the background and cost no time. */
  readonly checkpointEvery?: number;
  readonly validateEvery?: number;
  /** Logs of all ranks, however many; else those of interest. */
  readonly everyRank?: boolean;
  /** What else a rank prints in an iteration, after its chatter. */
  readonly also?: (file: RankFile, iteration: number, startNs: number) => void;
}

/** A rank prints something of no importance in one of a hundred iterations. */
const CHATTER_SHARE = 0.01;

export function emitLogs(
  simulation: Simulation,
  output: Output,
  options: LogOptions = {},
): Emitter {
  const { spec } = simulation;
  const { checkpointEvery = 50, validateEvery = 100, everyRank = false, also } = options;
  const groups = clusterGroups(simulation);
  const files = new Map<number, RankFile>();
  const ranks = everyRank ? [...Array(spec.gpus).keys()] : ranksOfInterest(simulation, groups);
  for (const rank of ranks) {
    const file = new RankFile(simulation, output, rank);
    writeStartup(simulation, file, membershipsOf(groups, rank));
    files.set(rank, file);
  }
  const kernels = new KernelLogs(simulation);
  const first = files.get(0)!;
  const last = files.get(spec.gpus - 1)!;
  let before = 0;
  /** What the last whole iteration took. */
  let usualNs = 1e9;
  let stopped = false;
  return {
    iteration(times: IterationTimes): void {
      const { iteration, startNs } = times;
      for (const fault of spec.faults) {
        if (fault.from === iteration && !isEnding(fault, iteration))
          kernels.add(fault, startNs, false);
      }
      for (const file of files.values()) {
        chatter(simulation, file, iteration, startNs);
        also?.(file, iteration, startNs);
      }
      const doneNs = times.rankEndNs[spec.gpus - 1]!;
      if (doneNs !== Infinity) {
        last.megatron(doneNs, iterationLine(simulation, iteration, (doneNs - before) / 1e6));
        usualNs = doneNs - before;
        before = doneNs;
        if (iteration % validateEvery === 0)
          for (const line of validationLines(spec, iteration)) last.plain(line);
        if (iteration % checkpointEvery === 0) {
          first.plain(
            `saving checkpoint at iteration ${String(iteration).padStart(7)} to ${CHECKPOINTS} in torch_dist format`,
          );
          first.info(
            doneNs,
            `scheduled an async checkpoint save at iteration ${iteration} to ${CHECKPOINTS}`,
          );
        }
      }
      if (times.endNs !== Infinity) return;
      stopped = true;
      const isNan = endingsAt(simulation, times).some(({ fault }) => fault.cause === "numerical");
      // The loss is printed at the end of the iteration that produced it; then the check stops the job.
      if (isNan) {
        last.megatron(startNs + usualNs, iterationLine(simulation, iteration, usualNs / 1e6, true));
      }
      writeEnding(simulation, groups, times, files, kernels, usualNs);
    },
    end(): void {
      // Only rank 0 says so (print_datetime); the processes of the others just leave.
      if (!stopped) {
        first.plain(`[after training is done] datetime: ${first.stamp(before + 5e8)} `);
      }
      for (const file of files.values()) file.end();
      kernels.end(output);
    },
  };
}

/** Lines that real logs have between the telling ones, and that mean nothing. */
function chatter({ spec }: Simulation, file: RankFile, iteration: number, startNs: number): void {
  const u = uniform(spec.seed ^ STREAM.logs, file.rank, iteration, 21);
  if (u >= CHATTER_SHARE * spec.noise) return;
  switch (hash(spec.seed ^ STREAM.logs, file.rank, iteration, 22) % 4) {
    case 0:
      file.nccl(`[Proxy Progress] Device ${file.gpu} CPU core ${(file.pid * 7) % 96}`);
      break;
    case 1:
      file.plain(
        `${SITE}/torch/utils/data/dataloader.py:627: UserWarning: This DataLoader will create 8 worker processes in total. Our suggested max number of worker in current system is 6.`,
      );
      file.plain("  warnings.warn(");
      break;
    case 2:
      file.c10d(
        startNs + 1e6,
        "W",
        "CUDAAllocatorConfig.h:30",
        "Warning: expandable_segments not supported on this platform (function operator())",
      );
      break;
    default:
      file.info(startNs + 1e6, "prefetched next shard of the data set", "DEBUG");
  }
}

/**
 * Whose logs are written. Up to 1,024 ranks: all. Beyond that a folder of logs helps nobody, so only: the
 * last rank (it prints the iterations), the first rank of each machine, the ranks that a fault names, and
 * those that communicate with them, because their logs say what became of the others (at most 64 of a group).
 */
function ranksOfInterest({ spec, topology }: Simulation, groups: ClusterGroups): number[] {
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  if (spec.gpus <= ALL_UP_TO) return all;
  const chosen = new Set([spec.gpus - 1]);
  for (const rank of all) if (topology.gpuOf(rank) === 0) chosen.add(rank);
  for (const fault of spec.faults) {
    const ends = fault.link && linkEnds(topology, spec.gpus, fault.link);
    const named = ends ? ends.flat() : faultRanks(spec, topology, fault);
    if (named.length > ALL_UP_TO) continue;
    for (const rank of named) {
      chosen.add(rank);
      for (const { role, group } of membershipsOf(groups, rank)) {
        if (role === WORLD) continue;
        for (const peer of group.ranks.slice(0, PEERS_OF_A_GROUP)) chosen.add(peer);
      }
    }
  }
  return [...chosen].sort((a, b) => a - b);
}

/**
 * What Megatron prints of its progress (megatron/training/training.py, training_log and
 * evaluate_and_print_results): one line an iteration on the last rank, with --log-interval 1 and
 * --log-throughput; validation every so often; checkpoints on rank 0.
 * `isNan`: the loss is not a number, which Megatron prints and counts before it gives up.
 */
function iterationLine(
  { spec }: Simulation,
  iteration: number,
  elapsedMs: number,
  isNan = false,
): string {
  const batch = spec.microBatches * spec.dp;
  const n = spec.noise;
  const u = (k: number): number => uniform(spec.seed ^ STREAM.logs, iteration, k, 1) - 0.5;
  const norm = (0.6 + 4 * Math.exp(-iteration / 60)) * (1 + 0.3 * n * u(1));
  const rate = PEAK_RATE * Math.min(1, iteration / WARM_UP_ITERATIONS);
  return [
    ` iteration ${pad(iteration, 8)}/${pad(spec.iterations, 8)}`,
    `consumed samples: ${pad(iteration * batch, 12)}`,
    `elapsed time per iteration (ms): ${elapsedMs.toFixed(1)}`,
    `throughput per GPU (TFLOP/s/GPU): ${teraflops(spec, elapsedMs).toFixed(1)}`,
    `learning rate: ${scientific(rate)}`,
    `global batch size: ${pad(batch, 5)}`,
    `lm loss: ${isNan ? "NAN" : scientific(lossAt(iteration) * (1 + 0.01 * n * u(2)))}`,
    `loss scale: 1.0`,
    `grad norm: ${isNan ? "nan" : norm.toFixed(3)}`,
    `number of skipped iterations: ${pad(0, 3)}`,
    `number of nan iterations: ${pad(isNan ? 1 : 0, 3)}`,
    "",
  ]
    .join(" | ")
    .trimEnd();
}

function validationLines(spec: ClusterSpec, iteration: number): string[] {
  const loss =
    lossAt(iteration) *
    (1.01 + 0.01 * spec.noise * (uniform(spec.seed ^ STREAM.logs, iteration, 3, 1) - 0.5));
  const line = ` validation loss at iteration ${iteration} | lm loss value: ${scientific(loss)} | lm loss PPL: ${scientific(Math.exp(loss))} | `;
  const rule = "-".repeat(line.length);
  return [rule, line, rule];
}

/** From the entropy of a vocabulary of 32,000 down to what a model of a few billion parameters reaches. */
function lossAt(iteration: number): number {
  return 2.1 + 8.3 / (1 + iteration / 40) ** 0.8;
}

/** Model operations of one iteration (Narayanan et al., SC '21) over all GPUs and the time. */
function teraflops(spec: ClusterSpec, elapsedMs: number): number {
  const { hidden, sequence, layersPerStage, pp, microBatches, dp, gpus } = spec;
  const perToken = 3 * (24 * hidden * hidden + 4 * hidden * sequence) * layersPerStage * pp;
  return (perToken * sequence * microBatches * dp) / gpus / elapsedMs / 1e9;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, " ");
}

/** Python's {:.6E}: at least two digits in the exponent. */
function scientific(value: number): string {
  const [mantissa, exponent] = value.toExponential(6).split("e") as [string, string];
  return `${mantissa}E${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}
