/**
 * Who did an operation. The writer puts the data-parallel index into `pid` and five threads a rank into `tid`
 * (rank * 5 + lane: compute, pp-comm, tp-comm, dp-comm, misc), and tells the pipeline stage only in the names of
 * the threads, at the end of the file.
 */
import { MAX_RANKS } from "../../model/ids.ts";
import type { StageColumnSet } from "./stage-columns.ts";

const LANES = 5;
const STAGE_NAME = /^PP rank (\d{1,6}),/;

interface Workers {
  readonly rank: Int32Array;
  readonly stage: Int32Array;
  /** Whether stages had to be guessed from the order of ranks. */
  readonly isGuess: boolean;
}

/** "PP rank 3, TP rank 0, compute" → 3; null where it names no stage. */
export function stageOfThread(name: string): number | null {
  const m = STAGE_NAME.exec(name);
  return m ? Number(m[1]) : null;
}

/** A thread's rank; -1 where it is not believed. */
export function rankOfThread(thread: number): number {
  const rank = Math.floor(thread / LANES);
  return rank >= 0 && rank < MAX_RANKS ? rank : -1;
}

/** `stages`: rank → stage, as far as threads were named. */
export function workersOf(
  { process, thread }: Readonly<StageColumnSet>,
  stages: ReadonlyMap<number, number>,
): Workers {
  const rank = Int32Array.from(thread, rankOfThread);
  const isGuess = rank.some((r) => r >= 0 && !stages.has(r));
  const known = isGuess ? guessed(process, rank) : stages;
  return { rank, stage: Int32Array.from(rank, (r) => known.get(r) ?? -1), isGuess };
}

/** A cut file has no names. Ranks of one replica stand in the order of their stages: Megatron puts pipelines outermost. */
function guessed(process: Int32Array, rank: Int32Array): Map<number, number> {
  const ranksOf = new Map<number, Set<number>>();
  for (let i = 0; i < rank.length; i++) {
    const ranks = ranksOf.get(process[i]!) ?? new Set();
    ranksOf.set(process[i]!, ranks.add(rank[i]!));
  }
  const stages = new Map<number, number>();
  for (const ranks of ranksOf.values()) {
    [...ranks].sort((a, b) => a - b).forEach((r, stage) => stages.set(r, stage));
  }
  return stages;
}
