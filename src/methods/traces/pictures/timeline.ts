/**
 * What ranks did around the worst step: the step of one rank, and the same moments of the others, on one clock. Events
 * are put into parts of the window, as many as the picture has pixels, so a step of a hundred thousand kernels
 * is as small as one of a hundred.
 */
import { coverage, overlapWith, unionOf } from "../../../maths/intervals.ts";
import type { Rank } from "../../../model/ids.ts";
import { COMMUNICATION, type RankKernels } from "../../../model/kernels.ts";
import type { Regression } from "../../../model/regression.ts";
import {
  CPU_ACTIVITIES,
  type CpuActivity,
  type RankClock,
  type RankLane,
  type TimelinePicture,
} from "../../../model/trace-picture.ts";
import type { RunProfile } from "../../../model/trace-profile.ts";
import { byActivity, gpuActivities } from "../gpu-activity.ts";
import { earliest, kernelClocks } from "../kernel-clocks.ts";
import { measured, type Measured } from "../measured.ts";
import { ranked } from "../profile-run.ts";
import { cpuActivities, longestCalls } from "./cpu-activity.ts";
import { worstFirst, worstStep } from "./worst-step.ts";

const PARTS = 900;
const MOST_LANES = 16;
const MOST_CALLS = 16;
/** Of the step, shown before and after it. */
const MARGIN = 0.03;

interface Placed {
  readonly one: Measured;
  /** Add to the trace's times for the common, aligned ones. */
  readonly shiftNs: number;
}

/** null where the run has no step. */
export function timelinePicture(
  kernels: readonly RankKernels[],
  run: RunProfile,
  regressions: readonly Regression[],
): TimelinePicture | null {
  const traces = ranked(kernels);
  const byRank = new Map<Rank, RankKernels[]>();
  for (const [rank, trace] of traces) byRank.set(rank, [...(byRank.get(rank) ?? []), trace]);
  const clocks = new Map(kernelClocks(traces).map((clock) => [clock.rank, clock]));
  const epochNs = earliest(traces);
  const place = (trace: RankKernels, clock: RankClock | undefined): Placed => ({
    one: measured(trace),
    shiftNs: Number(trace.epochNs - epochNs) - (clock?.aheadNs ?? 0),
  });

  const { rank, index } = worstStep(run, regressions);
  const own = (byRank.get(rank) ?? []).map((trace) => place(trace, clocks.get(rank)));
  const at = stepOf(own, index);
  if (!at) return null;
  const { steps } = at.placed.one;
  const startNs = steps.startNs[at.step]! + at.placed.shiftNs;
  const stepNs = steps.endNs[at.step]! - steps.startNs[at.step]!;
  if (!(stepNs > 0)) return null;
  const window = { from: startNs - MARGIN * stepNs, to: startNs + (1 + MARGIN) * stepNs };
  const number = steps.number[at.step]!;

  const order = worstFirst(run, regressions);
  const shown = [rank, ...order.filter((other) => other !== rank)].slice(0, MOST_LANES);
  const lanes = shown.flatMap((other): RankLane[] => {
    const clock = clocks.get(other);
    const isAligned = clock?.component === clocks.get(rank)?.component;
    const list =
      other === rank ? own : (byRank.get(other) ?? []).map((trace) => place(trace, clock));
    const placed = isAligned ? inWindow(list, window) : besides(list, number, startNs);
    return placed ? [laneOf(other, placed, window, isAligned)] : [];
  });
  const drawn = new Set(lanes.map((lane) => lane.rank));
  return {
    rank,
    step: number,
    stepMs: stepNs / 1e6,
    windowMs: (window.to - window.from) / 1e6,
    parts: PARTS,
    lanes,
    leftOut: order.filter((other) => !drawn.has(other)).toSorted((a, b) => a - b),
  };
}

/** Steps are counted over all traces of a rank, as in its profile. */
function stepOf(list: readonly Placed[], index: number): { placed: Placed; step: number } | null {
  let before = 0;
  for (const placed of list) {
    const { length } = placed.one.steps.startNs;
    if (index < before + length) return { placed, step: index - before };
    before += length;
  }
  return null;
}

interface Window {
  readonly from: number;
  readonly to: number;
}

/** Of a rank's traces the one with most of its steps in the window. */
function inWindow(list: readonly Placed[], { from, to }: Window): Placed | null {
  let best: Placed | null = null;
  let most = 0;
  for (const placed of list) {
    const { startNs, endNs } = placed.one.steps;
    let ns = 0;
    for (const [i, start] of startNs.entries())
      ns += Math.max(
        0,
        Math.min(endNs[i]! + placed.shiftNs, to) - Math.max(start + placed.shiftNs, from),
      );
    if (ns <= most) continue;
    most = ns;
    best = placed;
  }
  return best;
}

/** Moved so that its step of the same number begins at the same place. */
function besides(list: readonly Placed[], number: number, startNs: number): Placed | null {
  for (const { one } of list) {
    const step = one.steps.number.indexOf(number);
    if (step >= 0) return { one, shiftNs: startNs - one.steps.startNs[step]! };
  }
  return null;
}

function laneOf(
  rank: Rank,
  { one, shiftNs }: Placed,
  window: Window,
  isAligned: boolean,
): RankLane {
  const { trace, steps } = one;
  const { gpu } = trace;
  const [from, to] = [window.from - shiftNs, window.to - shiftNs];
  const activities = gpuActivities(one);
  const cpu = cpuActivities(trace);
  const communication = unionOf(
    gpu.startNs,
    gpu.durNs,
    gpu.count,
    (row) => gpu.kind[row] === COMMUNICATION,
  );
  return {
    rank,
    gpu: byActivity((activity) => coverage(activities[activity], from, to, PARTS)),
    communication: coverage(communication, from, to, PARTS),
    cpu: Object.fromEntries(
      CPU_ACTIVITIES.map((activity) => [activity, coverage(cpu[activity], from, to, PARTS)]),
    ) as Record<CpuActivity, Float32Array>,
    calls: longestCalls(trace, from, to, MOST_CALLS),
    steps: steps.startNs.flatMap((start, i) =>
      start < to && steps.endNs[i]! > from
        ? [
            {
              number: steps.number[i]!,
              startMs: (start - from) / 1e6,
              endMs: (steps.endNs[i]! - from) / 1e6,
            },
          ]
        : [],
    ),
    isAligned,
    ms: byActivity((activity) => overlapWith(activities[activity], from, to) / 1e6),
  };
}
