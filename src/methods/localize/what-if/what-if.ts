/**
 * How long would steps take if nobody straggled, and who makes the difference? Lin et al., "Understanding Stragglers
 * in Large Model Training Using What-if Analysis" (OSDI '25): durations that the trace tells are replaced, here and
 * there, by what is typical of their kind, and the step is run again.
 */
import { mean } from "../../../base/numbers.ts";
import type { Rank } from "../../../model/ids.ts";
import type { StageOperations } from "../../../model/stage-operations.ts";
import { dependenciesOf } from "./dependencies.ts";
import { idealDurations, lanesOf, ownDurations } from "./durations.ts";
import { gridOf, type Grid, type Op } from "./grid.ts";
import { isCompute, kindForPeople } from "./kinds.ts";
import { evenPasses, evenStages, passCorrelation, passSpread } from "./micro-batches.ts";
import { planOf, replay, replayEachReplica } from "./replay.ts";

export interface WhatIf {
  readonly replicas: number;
  readonly stages: number;
  /** Iterations as printed. */
  readonly steps: Int32Array;
  readonly incompleteSteps: number;
  /** Of each step, in milliseconds: as recorded, replayed with its own durations, and with ideal ones. */
  readonly recordedMs: Float64Array;
  readonly actualMs: Float64Array;
  readonly idealMs: Float64Array;
  /** S (equation 1): mean actual over mean ideal. */
  readonly slowdown: number;
  /** S of everything ideal but one kind of operations (2), slowest first. */
  readonly byKind: readonly { readonly kind: string; readonly slowdown: number }[];
  /** … but one replica, by index; … but one stage. */
  readonly byReplica: readonly number[];
  readonly byStage: readonly number[];
  /** Every worker, slowest first. */
  readonly workers: readonly Worker[];
  /**
   * M_W (5): the share of the slow-down that goes when the slowest 3 % of the workers become ideal. NaN, like the
   * other shares, where there is no slow-down.
   */
  readonly workerShare: number;
  readonly slowest: readonly Worker[];
  /** The same for each stage; M_S is that of the last. */
  readonly stageShares: readonly number[];
  /**
   * Ours, beside the paper's: the same when the passes of each stage become even among themselves, and when stages
   * become even on average while micro-batches stay as they are. M_S does not tell the two apart: it takes from the last
   * stage both what it costs more and what its micro-batches differ by. (A slow worker is uneven, too: ask first
   * whether there is one.)
   */
  readonly evenPassesShare: number;
  readonly evenStagesShare: number;
  /** Of a micro-batch's forward and backward pass (§5.3); NaN where passes do not vary. */
  readonly passCorrelation: number;
  /** Standard deviation of like passes of one worker in one step, as a share; NaN where there is one each. */
  readonly passSpread: number;
  readonly microBatches: number;
  /** The same for any set of workers. */
  readonly share: (workers: readonly Worker[]) => number;
}

export interface Worker {
  readonly rank: Rank;
  readonly replica: number;
  readonly stage: number;
  /** S_w (4), as the paper estimates it: the smaller of its replica's and its stage's. */
  readonly slowdown: number;
  /** Computation in each step, in milliseconds. */
  readonly computeMs: Float64Array;
}

/** Workers that count as few (equation 5). */
const FEW = 0.03;
/** What all replays together may cost, a few seconds. Steps are left out above that. */
const MAX_CELL_VISITS = 2e8;
/** Replays that are there whatever the job's size. */
const REPLAYS = 24;

/** Null where the files do not hold one step that can be replayed. */
export function whatIf(operations: readonly StageOperations[]): WhatIf | null {
  const grid = gridOf(operations, (stages) => MAX_CELL_VISITS / (REPLAYS + 2 * stages));
  const dependencies = grid && dependenciesOf(grid);
  // Stages that nothing ties together would not wait for each other.
  if (!dependencies || (grid.stages > 1 && dependencies.pairs === 0)) return null;
  const plan = planOf(grid, dependencies);
  if (!plan) return null;

  const own = ownDurations(grid, dependencies);
  const ideal = idealDurations(grid, own);
  const actualMs = replay(plan, own);
  const idealMs = replay(plan, ideal);
  const [actual, best] = [mean(actualMs), mean(idealMs)];
  const slowdownBy = (keeps: Select): number =>
    mean(replay(plan, mixed(grid, ideal, own, keeps))) / best;
  const shareOf = (durations: Float64Array): number =>
    actual > best ? (actual - mean(replay(plan, durations))) / (actual - best) : NaN;
  const shareBy = (fixed: Select): number => shareOf(mixed(grid, own, ideal, fixed));

  const byReplica = replayEachReplica(plan, own, ideal).map((ms) => ms / best);
  const byStage = range(grid.stages, (s) => slowdownBy(({ stage }) => stage === s));
  const workers = workersOf(grid, own, byReplica, byStage);
  const share = (few: readonly Worker[]): number =>
    shareBy((op, replica) =>
      few.some((worker) => worker.replica === replica && worker.stage === op.stage),
    );
  const slowest = workers.slice(0, Math.ceil(workers.length * FEW));
  return {
    replicas: grid.replicas,
    stages: grid.stages,
    steps: grid.steps,
    incompleteSteps: grid.incompleteSteps,
    recordedMs: recordedSteps(grid),
    actualMs,
    idealMs,
    slowdown: actual / best,
    byKind: [...new Set(grid.ops.map(({ kind }) => kindForPeople(kind)))]
      .map((kind) => ({
        kind,
        slowdown: slowdownBy((op) => kindForPeople(op.kind) === kind),
      }))
      .sort((a, b) => b.slowdown - a.slowdown),
    byReplica,
    byStage,
    workers,
    slowest,
    workerShare: share(slowest),
    stageShares: range(grid.stages, (s) => shareBy(({ stage }) => stage === s)),
    evenPassesShare: shareOf(evenPasses(grid, own)),
    evenStagesShare: shareOf(evenStages(grid, own)),
    passCorrelation: passCorrelation(grid, own),
    ...passSpread(grid, own),
    share,
  };
}

type Select = (op: Op, replica: number) => boolean;

/** `from`, with `other` where the selection says so. */
function mixed(grid: Grid, from: Float64Array, other: Float64Array, select: Select): Float64Array {
  const mix = from.slice();
  grid.ops.forEach((op, at) => {
    for (let replica = 0; replica < grid.replicas; replica++) {
      if (!select(op, replica)) continue;
      const end = (at + 1) * grid.lanes;
      for (let i = at * grid.lanes + replica; i < end; i += grid.replicas) mix[i] = other[i]!;
    }
  });
  return mix;
}

/** The slowest first; of equals, the lowest rank. */
function workersOf(
  grid: Grid,
  own: Float64Array,
  byReplica: readonly number[],
  byStage: readonly number[],
): Worker[] {
  const computeMs = grid.ranks.map(() => new Float64Array(grid.steps.length));
  grid.ops.forEach(({ kind, stage }, op) => {
    if (!isCompute(kind)) return;
    lanesOf(grid, own, op).forEach((value, lane) => {
      const step = Math.floor(lane / grid.replicas);
      computeMs[(lane % grid.replicas) * grid.stages + stage]![step]! += value;
    });
  });
  return grid.ranks
    .map((rank, place): Worker => {
      const [replica, stage] = [Math.floor(place / grid.stages), place % grid.stages];
      const slowdown = Math.min(byReplica[replica]!, byStage[stage]!);
      return { rank, replica, stage, slowdown, computeMs: computeMs[place]! };
    })
    .sort((a, b) => b.slowdown - a.slowdown || a.rank - b.rank);
}

function recordedSteps(grid: Grid): Float64Array {
  const first = new Float64Array(grid.steps.length).fill(Infinity);
  const last = new Float64Array(grid.steps.length).fill(-Infinity);
  grid.startMs.forEach((startMs, i) => {
    const step = Math.floor((i % grid.lanes) / grid.replicas);
    first[step] = Math.min(first[step]!, startMs);
    last[step] = Math.max(last[step]!, startMs + grid.durationMs[i]!);
  });
  return last.map((endMs, step) => endMs - first[step]!);
}

function range<T>(length: number, of: (at: number) => T): T[] {
  return Array.from({ length }, (_, at) => of(at));
}
