/** What operations cost by themselves, and what they would cost if all of a kind were alike. */
import { mean } from "../../../base/numbers.ts";
import { median } from "../../../maths/robust.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Grid } from "./grid.ts";
import { isCompute, KINDS, spansReplicas } from "./kinds.ts";

/** Clocks of two machines may differ by so much; an end further before the last arrival is no measurement. */
const CLOCK_MS = 10;

/** Without waiting: communication counts from the moment when the last of its partners has arrived (§3). */
export function ownDurations(grid: Grid, { groups, isShared }: Dependencies): Float64Array {
  const { lanes, replicas, startMs } = grid;
  const own = grid.durationMs.slice();
  const arrivedMs = new Float64Array(lanes);
  for (const ops of groups) {
    if (!isShared[ops[0]!]) continue;
    arrivedMs.fill(-Infinity);
    for (const op of ops) {
      for (let lane = 0; lane < lanes; lane++) {
        arrivedMs[lane] = Math.max(arrivedMs[lane]!, startMs[op * lanes + lane]!);
      }
    }
    const isSynced = spansReplicas(grid.ops[ops[0]!]!.kind);
    for (let from = 0; isSynced && from < lanes; from += replicas) {
      const step = arrivedMs.subarray(from, from + replicas);
      step.fill(step.reduce((a, b) => Math.max(a, b)));
    }
    for (const op of ops) {
      for (let lane = 0; lane < lanes; lane++) {
        const at = op * lanes + lane;
        const spent = startMs[at]! + own[at]! - arrivedMs[lane]!;
        own[at] = spent <= -CLOCK_MS ? 0 : spent;
      }
    }
  }
  return own;
}

/** Each operation as long as its kind is on all workers and steps: the mean of computation, else the median. */
export function idealDurations(grid: Grid, own: Float64Array): Float64Array {
  const ideal = new Float64Array(own.length);
  for (const kind of KINDS) {
    const ops = grid.ops.flatMap((op, at) => (op.kind === kind ? [at] : []));
    if (ops.length === 0) continue;
    const all = new Float64Array(ops.length * grid.lanes);
    ops.forEach((op, i) => all.set(lanesOf(grid, own, op), i * grid.lanes));
    const typical = isCompute(kind) ? mean(all) : median(all);
    for (const op of ops) lanesOf(grid, ideal, op).fill(typical);
  }
  return ideal;
}

export function lanesOf({ lanes }: Grid, values: Float64Array, op: number): Float64Array {
  return values.subarray(op * lanes, (op + 1) * lanes);
}
