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
import { STALL_CAUSES, type RunProfile, type RankProfile } from "../../../model/trace-profile.ts";
import { byActivity, gpuActivities } from "../gpu-activity.ts";
import { earliest, kernelClocks } from "../kernel-clocks.ts";
import { measured, type Measured } from "../measured.ts";
import { ranked } from "../profile-run.ts";
import { cpuActivities, longestCalls } from "./cpu-activity.ts";

interface WorstStep {
  readonly rank: Rank;
  /** Index into the rank's steps, over all of its traces. */
  readonly index: number;
}

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

/** Which step to look at: where the worst regression shows most, or the longest one. */
function worstStep(run: RunProfile, regressions: readonly Regression[]): WorstStep {
  const [first] = regressions.toSorted((a, b) => b.share - a.share);
  const accused = run.ranks.filter(({ rank }) => first === undefined || first.ranks.includes(rank));
  let worst: WorstStep = { rank: run.ranks[0]!.rank, index: 0 };
  let most = -Infinity;
  for (const profile of accused.length > 0 ? accused : run.ranks) {
    for (const index of profile.stepMs.keys()) {
      const ms = lostMs(profile, index, first);
      if (ms <= most) continue;
      most = ms;
      worst = { rank: profile.rank, index };
    }
  }
  return worst;
}

/** Milliseconds of the step that the regression's stalls take; of other regressions the whole step counts. */
function lostMs(profile: RankProfile, index: number, regression: Regression | undefined): number {
  const stepMs = profile.stepMs[index]!;
  const cause = STALL_CAUSES.find((one) => one === regression?.cause);
  if (cause === undefined) return stepMs;
  return stepMs * (profile.intraStalls[cause][index]! + profile.interStalls[cause][index]!);
}

/** Ranks, the worst first: by what regressions take of their step, then by how late their CPUs are. */
function worstFirst(run: RunProfile, regressions: readonly Regression[]): Rank[] {
  const weighed = run.ranks.map((profile) => ({
    rank: profile.rank,
    share: regressions.reduce(
      (sum, { ranks, share }) => sum + (ranks.includes(profile.rank) ? share : 0),
      0,
    ),
    late: mean(profile.breakdown?.["launch-gap"] ?? []),
  }));
  return weighed
    .toSorted((a, b) => b.share - a.share || b.late - a.late || a.rank - b.rank)
    .map(({ rank }) => rank);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
