/**
 * How many micro-batches each replica takes (Greyhound §5.2, S2). A program has as many as any replica may take; one
 * that takes fewer leaves the first ones out. What remains is exactly the schedule of so many (shares.test.ts), and the
 * last backward pass, behind which gradients are reduced, is everybody's last.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { UserError } from "../../base/errors.ts";
import type { Lanes } from "./lanes.ts";
import type { StageProgram } from "./program.ts";
import type { ClusterSpec } from "./spec.ts";

export interface Shares {
  /** By replica. */
  readonly microBatches: readonly number[];
  /** By lane: how many micro-batches of the program it leaves out. */
  readonly skipped: Int32Array;
  /** The largest of these; 0 where every lane runs the whole program. */
  readonly mostSkipped: number;
}

export function evenShares(spec: ClusterSpec, mostMicroBatches: number): Shares {
  const microBatches = Array.from({ length: spec.dp }, () => spec.microBatches);
  return sharesOf(spec, mostMicroBatches, microBatches);
}

export function sharesOf(
  { tp, cp, dp }: ClusterSpec,
  mostMicroBatches: number,
  microBatches: readonly number[],
): Shares {
  const replicaSize = tp * cp;
  const skipped = new Int32Array(replicaSize * dp);
  for (let lane = 0; lane < skipped.length; lane++)
    skipped[lane] = mostMicroBatches - microBatches[Math.floor(lane / replicaSize)]!;
  const mostSkipped = skipped.reduce((most, n) => Math.max(most, n), 0);
  return { microBatches: [...microBatches], skipped, mostSkipped };
}

/** What a lane runs of a program when it leaves out so many micro-batches. */
export interface Run {
  /** The operators, in order. */
  readonly ops: Int32Array;
  /** By operator of the program: how many of `ops` come before it. */
  readonly before: Int32Array;
}

const known = new WeakMap<StageProgram, Map<number, Run>>();

export function runOf(program: StageProgram, skipped: number): Run {
  const runs = getOrInsert(known, program, () => new Map<number, Run>());
  const found = runs.get(skipped);
  if (found) return found;
  const ops = new Int32Array(program.count);
  const before = new Int32Array(program.count);
  let count = 0;
  for (let op = 0; op < program.count; op++) {
    before[op] = count;
    if (isRun(program, op, skipped)) ops[count++] = op;
  }
  const run = { ops: ops.subarray(0, count), before };
  runs.set(skipped, run);
  return run;
}

export function isRun({ microBatch }: StageProgram, op: number, skipped: number): boolean {
  return microBatch[op]! < 0 || microBatch[op]! >= skipped;
}

/** The program's size must be one that its schedule can have. */
export function checkMost({ microBatches, schedule, pp }: ClusterSpec, most: number): void {
  if (!Number.isSafeInteger(most) || most < microBatches) {
    throw new UserError(
      `a replica may take ${most} micro-batches at most, but all of them take ${microBatches}`,
      `allowed: whole numbers from ${microBatches}`,
      2,
    );
  }
  if (schedule === "interleaved" && most % pp !== 0)
    throw notInterleaved(`${most} micro-batches at most`, pp);
}

/** Refuses shares that no job can have. */
export function checkShares(
  spec: ClusterSpec,
  lanes: Lanes,
  mostMicroBatches: number,
  microBatches: readonly number[],
): void {
  const { dp, pp, schedule, fullyShard } = spec;
  const total = dp * spec.microBatches;
  const sum = microBatches.reduce((a, b) => a + b, 0);
  if (microBatches.length !== dp || sum !== total) {
    throw new UserError(
      `${microBatches.length} replicas are to take ${sum} micro-batches together`,
      `the job has ${dp} replicas and ${total} micro-batches per iteration`,
      2,
    );
  }
  microBatches.forEach((taken, replica) => {
    if (!Number.isSafeInteger(taken) || taken < 1 || taken > mostMicroBatches) {
      throw new UserError(
        `replica ${replica} is to take ${taken} micro-batches`,
        `allowed: 1 to ${mostMicroBatches}; simulate() with mostMicroBatches allows more`,
        2,
      );
    }
    if (schedule === "interleaved" && taken % pp !== 0)
      throw notInterleaved(`${taken} micro-batches of replica ${replica}`, pp);
  });
  if (microBatches.every((taken) => taken === microBatches[0])) return;
  if (fullyShard) {
    throw new UserError(
      "replicas of a fully sharded job gather every layer together, so all take the same number of micro-batches",
      "give each replica the same number",
      2,
    );
  }
  const { groupOf } = lanes.ep;
  const { skipped } = sharesOf(spec, mostMicroBatches, microBatches);
  const ofGroup = new Int32Array(lanes.ep.count).fill(-1);
  for (let lane = 0; spec.ep > 1 && lane < skipped.length; lane++) {
    const group = groupOf[lane]!;
    if (ofGroup[group] === -1) ofGroup[group] = skipped[lane]!;
    if (ofGroup[group] === skipped[lane]) continue;
    throw new UserError(
      "replicas that share experts exchange tokens in every micro-batch, so they take the same number",
      `give the same number to all replicas of one expert-parallel group (ep ${spec.ep})`,
      2,
    );
  }
}

function notInterleaved(what: string, pp: number): UserError {
  return new UserError(
    `the interleaved schedule cannot have ${what}`,
    `allowed: multiples of pp, ${pp}`,
    2,
  );
}
