/**
 * Minder §4.1: samples of all machines at the same times, gaps filled with the nearest sample, between 0 and 1.
 * That filling hides a machine that fell silent: its last value goes on. It is what the paper does.
 */
import { select } from "../../../maths/quickselect.ts";
import type { Fleet, MetricGrid } from "../../../model/fleet.ts";
import { catalogMetric } from "../../../model/metric-catalog.ts";

export type Limits = readonly [number, number];

/** Machines that have samples in all of the grids: a gap can be filled, a void cannot. */
export function machinesIn(fleet: Fleet, grids: readonly MetricGrid[]): Int32Array {
  const all = Int32Array.from(fleet.machines.keys());
  return all.filter((machine) =>
    grids.every(({ mean, ticks }) =>
      mean.subarray(machine * ticks, (machine + 1) * ticks).some((value) => !Number.isNaN(value)),
    ),
  );
}

/** Copies a machine's samples with its gaps filled; of two equally near samples the earlier. */
export function fillGaps(
  { mean, ticks }: MetricGrid,
  machine: number,
  to: Float32Array,
): Float32Array {
  const from = machine * ticks;
  let last = -1;
  for (let tick = 0; tick < ticks; tick++) {
    const value = mean[from + tick]!;
    if (Number.isNaN(value)) continue;
    to[tick] = value;
    if (tick > last + 1) {
      const middle = last < 0 ? 0 : ((last + tick) >> 1) + 1;
      if (last >= 0) to.fill(to[last]!, last + 1, middle);
      to.fill(value, middle, tick);
    }
    last = tick;
  }
  if (last >= 0) to.fill(to[last]!, last + 1, ticks);
  return to;
}

/** A machine may exceed the task's upper limit for this share of the time: glitches of counters set no limits. */
const GLITCHES = 0.01;

/** What this task's machines reach, from the catalog's lower limit up. */
export function taskLimits(grid: MetricGrid, machines: Int32Array): Limits {
  const { ticks } = grid;
  const bound = catalogMetric(grid.metric)?.bounds[0] ?? 0;
  const row = new Float32Array(ticks);
  const sorted = new Float64Array(ticks);
  const place = Math.floor((1 - GLITCHES) * (ticks - 1));
  let low = bound;
  let high = -Infinity;
  for (const machine of machines) {
    fillGaps(grid, machine, row);
    let least = Infinity;
    let most = -Infinity;
    for (let tick = 0; tick < ticks; tick++) {
      const value = row[tick]!;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    // Few machines reach farther than those before: only they are worth the search for the place.
    if (least >= low && most <= high) continue;
    sorted.set(row);
    low = Math.min(low, select(sorted, 0, ticks, ticks - 1 - place));
    high = Math.max(high, select(sorted, 0, ticks, place));
  }
  return [low, high];
}

/** Writes a grid's normalised values: machine i of `machines` at tick t goes to t · stride + i. */
export function normaliseInto(
  to: Float32Array,
  stride: number,
  grid: MetricGrid,
  machines: Int32Array,
  [low, high]: Limits,
): void {
  const row = new Float32Array(grid.ticks);
  const scale = high > low ? 1 / (high - low) : 0;
  machines.forEach((machine, i) => {
    fillGaps(grid, machine, row);
    for (let tick = 0; tick < grid.ticks; tick++) {
      const value = (row[tick]! - low) * scale;
      to[tick * stride + i] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
  });
}
