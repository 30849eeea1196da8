/** What each rank runs in an iteration, for whatever hangs on single operators. */
import type { Lanes } from "./lanes.ts";
import type { StageProgram } from "./program.ts";
import { isRun, runOf, type Run, type Shares } from "./shares.ts";

export interface RankWork {
  programOf(rank: number): StageProgram;
  /** By rank: operators that it runs; and the one of its program that it runs after so many others. */
  readonly counts: Int32Array;
  opAt(rank: number, place: number): number;
  /** GPU time of a rank's kernels in an iteration, and in front of one operator, with the job's usual share. */
  workNs(rank: number): number;
  meanWorkNs(rank: number): number;
}

/** What the usual share costs a stage: neither depends on who takes how much just now. */
export interface UsualWork {
  readonly workNs: readonly number[];
  readonly operators: readonly number[];
}

/** `skipped`: micro-batches of the program that are more than usual. */
export function usualWork(programs: readonly StageProgram[], skipped: number): UsualWork {
  return {
    workNs: programs.map((program) =>
      program.computeNs.reduce((sum, ns, op) => sum + (isRun(program, op, skipped) ? ns : 0), 0),
    ),
    operators: programs.map((program) => runOf(program, skipped).ops.length),
  };
}

export function rankWork(
  programs: readonly StageProgram[],
  { lanes, stages }: Lanes,
  usual: UsualWork,
  { skipped }: Shares,
): RankWork {
  const stageOf = (rank: number): number => Math.floor(rank / lanes);
  const ofRank = (rank: number): Run => runOf(programs[stageOf(rank)]!, skipped[rank % lanes]!);
  return {
    programOf: (rank) => programs[stageOf(rank)]!,
    counts: Int32Array.from({ length: lanes * stages }, (_, rank) => ofRank(rank).ops.length),
    opAt: (rank, place) => ofRank(rank).ops[place]!,
    workNs: (rank) => usual.workNs[stageOf(rank)]!,
    meanWorkNs: (rank) => usual.workNs[stageOf(rank)]! / usual.operators[stageOf(rank)]!,
  };
}
