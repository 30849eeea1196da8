/**
 * "logs/rankN.log": what the processes of a Megatron-LM job print, each by the clock of its machine, and
 * "logs/dmesg.<machine>.log" where hardware broke. Which ranks are written: ./logs/interest.ts.
 */
import type { IterationTimes, Simulation } from "../cluster/times.ts";
import { isEnding } from "../cluster/faults.ts";
import { clusterGroups } from "../cluster/groups.ts";
import { hash, STREAM, uniform } from "../cluster/noise.ts";
import type { Emitter, Output } from "./emitter.ts";
import { endingsAt, writeEnding } from "./logs/ending.ts";
import { ranksOfInterest } from "./logs/interest.ts";
import { iterationLine, validationLines } from "./logs/iteration-lines.ts";
import { KernelLogs } from "./logs/kernel-log.ts";
import { membershipsOf } from "./logs/memberships.ts";
import { RankFile, SITE } from "./logs/rank-file.ts";
import { OperatorCounts } from "./operator-counts.ts";
import { CHECKPOINTS, writeStartup } from "./logs/startup.ts";

export interface LogOptions {
  /** Iterations between checkpoints, which are written in the background and cost no time. */
  readonly checkpointEvery?: number;
  readonly validateEvery?: number;
  /** Logs of all ranks, however many; else those of ./logs/interest.ts. */
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
  const counts = new OperatorCounts(simulation);
  let { topology } = simulation;
  let before = 0;
  /** What the last whole iteration took. */
  let usualNs = 1e9;
  let stopped = false;
  return {
    iteration(times: IterationTimes): void {
      const { iteration, startNs } = times;
      if (times.topology !== topology) {
        topology = times.topology;
        for (const file of files.values()) file.sit(topology);
      }
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
      if (times.endNs !== Infinity) {
        counts.add(times.shares);
        return;
      }
      stopped = true;
      const isNan = endingsAt(simulation, times).some(({ fault }) => fault.cause === "numerical");
      // The loss is printed at the end of the iteration that produced it; then the check stops the job.
      if (isNan) {
        last.megatron(startNs + usualNs, iterationLine(simulation, iteration, usualNs / 1e6, true));
      }
      writeEnding(simulation, groups, times, counts, files, kernels, usualNs);
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
