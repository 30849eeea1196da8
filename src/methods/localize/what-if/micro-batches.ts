/**
 * How much micro-batches differ on one and the same worker, and whether it is their content. A longer sequence makes
 * the forward and the backward pass longer, on every stage; hiccups of a device hit one of the two (paper §5.3).
 */
import { mean } from "../../../base/numbers.ts";
import { lanesOf } from "./durations.ts";
import type { Grid, Op } from "./grid.ts";
import { isPass } from "./kinds.ts";

/** Durations with every pass as long as like passes of its stage are on average; the rest as it was. */
export function evenPasses(grid: Grid, own: Float64Array): Float64Array {
  const even = own.slice();
  for (const ops of likePasses(grid).values()) {
    const average = mean(ops.map((op) => mean(lanesOf(grid, own, op))));
    for (const op of ops) lanesOf(grid, even, op).fill(average);
  }
  return even;
}

/** Durations with passes scaled so that every stage costs the same on average; micro-batches differ as they did. */
export function evenStages(grid: Grid, own: Float64Array): Float64Array {
  const even = own.slice();
  for (const kind of ["forward-compute", "backward-compute"] as const) {
    const ops = grid.ops.flatMap((op, at) => (op.kind === kind ? [at] : []));
    const meanOf = (some: readonly number[]): number =>
      mean(some.map((op) => mean(lanesOf(grid, own, op))));
    const overall = meanOf(ops);
    for (let stage = 0; stage < grid.stages; stage++) {
      const here = ops.filter((op) => grid.ops[op]!.stage === stage);
      const average = meanOf(here);
      if (!(average > 0)) continue;
      for (const op of here) {
        const row = lanesOf(grid, even, op);
        for (let lane = 0; lane < row.length; lane++) row[lane]! *= overall / average;
      }
    }
  }
  return even;
}

/**
 * Pearson's correlation of a micro-batch's forward and backward pass, both relative to the worker's average, over all
 * workers and steps; so that slow workers and long stages, which are slow both ways, do not count. NaN where it is
 * not defined.
 */
export function passCorrelation(grid: Grid, own: Float64Array): number {
  const relative = relativePasses(grid, own);
  const forward = new Map<string, number>();
  grid.ops.forEach((op, at) => {
    if (op.kind === "forward-compute" && op.microBatch >= 0) forward.set(keyOf(op), at);
  });
  let [xx, yy, xy] = [0, 0, 0];
  grid.ops.forEach((op, at) => {
    const other = op.kind === "backward-compute" ? forward.get(keyOf(op)) : undefined;
    if (other === undefined) return;
    const xs = lanesOf(grid, relative, other);
    const ys = lanesOf(grid, relative, at);
    for (let lane = 0; lane < xs.length; lane++) {
      xx += xs[lane]! * xs[lane]!;
      yy += ys[lane]! * ys[lane]!;
      xy += xs[lane]! * ys[lane]!;
    }
  });
  return xx > 0 && yy > 0 ? xy / Math.sqrt(xx * yy) : NaN;
}

/** How much like passes of one worker differ within a step, root mean square, and how many of them there are. */
export function passSpread(grid: Grid, own: Float64Array) {
  let [sum, degrees, microBatches] = [0, 0, 0];
  for (const ops of likePasses(grid).values()) {
    microBatches = Math.max(microBatches, ops.length);
    for (let lane = 0; lane < grid.lanes; lane++) {
      const average = mean(ops.map((op) => own[op * grid.lanes + lane]!));
      if (!(average > 0)) continue;
      for (const op of ops) sum += (own[op * grid.lanes + lane]! / average - 1) ** 2;
      degrees += ops.length - 1;
    }
  }
  return { passSpread: Math.sqrt(sum / degrees), microBatches };
}

/** Each pass as a share above or below its worker's average of such passes; 0 for all else. */
function relativePasses(grid: Grid, own: Float64Array): Float64Array {
  const relative = new Float64Array(own.length);
  for (const ops of likePasses(grid).values()) {
    for (let replica = 0; replica < grid.replicas; replica++) {
      const average = workerMean(grid, own, ops, replica);
      if (!(average > 0)) continue;
      for (const op of ops) {
        const end = (op + 1) * grid.lanes;
        for (let i = op * grid.lanes + replica; i < end; i += grid.replicas) {
          relative[i] = own[i]! / average - 1;
        }
      }
    }
  }
  return relative;
}

const keyOf = ({ stage, chunk, microBatch }: Op): string => `${stage} ${chunk} ${microBatch}`;

/** Passes that should cost the same on one worker: of a stage, a part of the model and a direction. */
function likePasses({ ops }: Grid): Map<string, number[]> {
  const like = new Map<string, number[]>();
  ops.forEach(({ stage, kind, chunk }, at) => {
    if (!isPass(kind)) return;
    const key = `${stage} ${kind} ${chunk}`;
    like.set(key, [...(like.get(key) ?? []), at]);
  });
  return like;
}

function workerMean(grid: Grid, own: Float64Array, ops: readonly number[], replica: number) {
  const values: number[] = [];
  for (const op of ops) {
    const row = lanesOf(grid, own, op);
    for (let lane = replica; lane < row.length; lane += grid.replicas) values.push(row[lane]!);
  }
  return mean(values);
}
