/** What a GPU does at every moment of its trace, and how much of a step each takes (pictures, breakdown). */
import { overlapWith, unionOf, without, type Intervals } from "../../maths/intervals.ts";
import { MEMCPY, MEMSET } from "../../model/kernels.ts";
import { GPU_ACTIVITIES, type GpuActivity } from "../../model/trace-picture.ts";
import { COLLECTIVE, MATRIX } from "./instrumented.ts";
import type { Measured } from "./measured.ts";

type GpuActivities = Readonly<Record<GpuActivity, Intervals>>;

/** Disjoint; together they cover the trace from its first step or event to its last. */
export function gpuActivities({ trace, steps, classes }: Measured): GpuActivities {
  const { gpu } = trace;
  const of = (passes: (row: number) => boolean): Intervals =>
    unionOf(gpu.startNs, gpu.durNs, gpu.count, passes);
  const isCopy = (row: number): boolean => gpu.kind[row] === MEMCPY || gpu.kind[row] === MEMSET;
  const isMatrix = (row: number): boolean => classes[row] === MATRIX;
  const communicates = (row: number): boolean => classes[row] === COLLECTIVE;
  const isMinority = (row: number): boolean => !isMatrix(row) && !communicates(row) && !isCopy(row);
  const matrix = of(isMatrix);
  const computing = of((row) => isMatrix(row) || isMinority(row));
  const local = of((row) => !communicates(row));
  const busy = of(() => true);
  const last = busy.end.length - 1;
  const whole: Intervals = {
    start: Float64Array.of(Math.min(steps.startNs[0] ?? Infinity, busy.start[0] ?? Infinity)),
    end: Float64Array.of(Math.max(steps.endNs.at(-1) ?? 0, last < 0 ? 0 : busy.end[last]!)),
  };
  const empty = without(whole, busy);
  const late = launchGaps(trace, empty);
  return {
    matrix,
    minority: without(of(isMinority), matrix),
    copy: without(of(isCopy), computing),
    communication: without(of(communicates), local),
    "launch-gap": late,
    idle: without(empty, late),
  };
}

/** The part of each empty stretch before the launch of what ends it. */
function launchGaps({ gpu, calls }: Measured["trace"], empty: Intervals): Intervals {
  const start: number[] = [];
  const end: number[] = [];
  let row = 0;
  for (let i = 0; i < empty.start.length; i++) {
    const from = empty.start[i]!;
    const to = empty.end[i]!;
    while (row < gpu.count && gpu.startNs[row]! < to) row++;
    const launch = row < gpu.count ? gpu.launch[row]! : -1;
    const until = launch < 0 ? from : Math.min(to, calls.startNs[launch]!);
    if (until <= from) continue;
    start.push(from);
    end.push(until);
  }
  return { start: Float64Array.from(start), end: Float64Array.from(end) };
}

/** Shares of each step, 0..1; of every step they add up to one. */
export function breakdownOf(one: Measured): Record<GpuActivity, number[]> {
  const { startNs, endNs } = one.steps;
  const activities = gpuActivities(one);
  return byActivity((activity) =>
    startNs.map(
      (from, i) =>
        overlapWith(activities[activity], from, endNs[i]!) / Math.max(1, endNs[i]! - from),
    ),
  );
}

export function byActivity<T>(make: (activity: GpuActivity) => T): Record<GpuActivity, T> {
  return Object.fromEntries(GPU_ACTIVITIES.map((one) => [one, make(one)])) as Record<
    GpuActivity,
    T
  >;
}
