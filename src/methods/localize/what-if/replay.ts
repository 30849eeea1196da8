/**
 * Runs a step again with other durations: an operation begins when all that it follows is over (and its partners
 * are ready), and lasts as long as its given duration. All steps and replicas at once, a loop over lanes an operation.
 */
import type { Dependencies } from "./dependencies.ts";
import type { Grid } from "./grid.ts";

interface Plan {
  readonly grid: Grid;
  /** Groups in an order in which they can be worked off. */
  readonly groups: readonly (readonly number[])[];
  readonly synced: readonly boolean[];
  readonly before: readonly (readonly number[])[];
  /** Room for the ends of all operations, used by one replay after the other. */
  readonly endMs: Float64Array;
}

/** Null where operations wait for each other in a circle: the trace does not follow the model. */
export function planOf(
  grid: Grid,
  { before, groups, synced }: Pick<Dependencies, "before" | "groups" | "synced">,
): Plan | null {
  const groupOf = new Int32Array(grid.ops.length);
  groups.forEach((ops, group) => ops.forEach((op) => (groupOf[op] = group)));
  const waitsFor = new Int32Array(groups.length);
  const next: number[][] = groups.map(() => []);
  before.forEach((firsts, op) => {
    for (const first of firsts) {
      next[groupOf[first]!]!.push(groupOf[op]!);
      waitsFor[groupOf[op]!]!++;
    }
  });
  const order = groups.flatMap((_, group) => (waitsFor[group] === 0 ? [group] : []));
  // The list grows while it is walked.
  for (const group of order) {
    for (const other of next[group]!) {
      if (--waitsFor[other]! === 0) order.push(other);
    }
  }
  if (order.length < groups.length) return null;
  return {
    grid,
    groups: order.map((group) => groups[group]!),
    synced: order.map((group) => synced[group]!),
    before,
    endMs: new Float64Array(grid.ops.length * grid.lanes),
  };
}

/** Duration of each step, from the common beginning of all ranks to the end of the last operation. */
export function replay(plan: Plan, durationMs: Float64Array): Float64Array {
  const { grid, groups, synced, before, endMs } = plan;
  const { lanes, replicas } = grid;
  const readyMs = new Float64Array(lanes);
  const doneMs = new Float64Array(lanes);
  groups.forEach((ops, group) => {
    readyMs.fill(0);
    for (const op of ops) {
      for (const first of before[op]!) {
        const from = first * lanes;
        for (let lane = 0; lane < lanes; lane++) {
          if (endMs[from + lane]! > readyMs[lane]!) readyMs[lane] = endMs[from + lane]!;
        }
      }
    }
    if (synced[group]) lastOfEachStep(readyMs, replicas);
    for (const op of ops) {
      const to = op * lanes;
      for (let lane = 0; lane < lanes; lane++) {
        endMs[to + lane] = readyMs[lane]! + durationMs[to + lane]!;
      }
    }
  });
  for (let op = 0; op < grid.ops.length; op++) {
    const from = op * lanes;
    for (let lane = 0; lane < lanes; lane++) {
      if (endMs[from + lane]! > doneMs[lane]!) doneMs[lane] = endMs[from + lane]!;
    }
  }
  lastOfEachStep(doneMs, replicas);
  return Float64Array.from(grid.steps, (_, step) => doneMs[step * replicas]!);
}

/**
 * Mean step time for each replica when it alone keeps its own durations. The others are then all alike, so that one
 * of them stands for all: every replica is paired with an ideal one, and all pairs are replayed at once.
 */
export function replayEachReplica(plan: Plan, own: Float64Array, ideal: Float64Array): number[] {
  const { grid } = plan;
  const stepMs = grid.replicas === 1 ? replay(plan, own) : replayPairs(plan, own, ideal);
  return Array.from({ length: grid.replicas }, (_, replica) => {
    let sum = 0;
    for (let lane = replica; lane < grid.lanes; lane += grid.replicas) sum += stepMs[lane]!;
    return sum / grid.steps.length;
  });
}

function replayPairs(plan: Plan, own: Float64Array, ideal: Float64Array): Float64Array {
  const { grid } = plan;
  const paired = new Float64Array(2 * own.length);
  for (let i = 0; i < own.length; i++) {
    paired[2 * i] = own[i]!;
    paired[2 * i + 1] = ideal[i]!;
  }
  const lanes = 2 * grid.lanes;
  const pairs = { ...grid, replicas: 2, lanes, steps: new Int32Array(grid.lanes) };
  return replay({ ...plan, grid: pairs, endMs: new Float64Array(paired.length) }, paired);
}

function lastOfEachStep(readyMs: Float64Array, replicas: number): void {
  for (let from = 0; from < readyMs.length; from += replicas) {
    const step = readyMs.subarray(from, from + replicas);
    let last = step[0]!;
    for (const ready of step) if (ready > last) last = ready;
    step.fill(last);
  }
}
