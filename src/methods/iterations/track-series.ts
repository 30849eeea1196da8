/** One series from its first point to its last: change points, episodes, restarts, pauses. */
import { median, spread } from "../../maths/robust.ts";
import type { ChangePoint, IterationSeries, Pause, TrackedSeries } from "../../model/series.ts";
import { findEpisodes } from "./episodes.ts";
import { IterationTracker } from "./iteration-tracker.ts";
import type { PointShift, Role } from "./iteration-tracker.ts";

export function trackSeries(
  series: IterationSeries,
  periods: readonly number[] = [],
): TrackedSeries {
  const { iteration, durationMs, between, batch } = series;
  const points = iteration.length;
  const roles: Role[] = Array.from({ length: points }, () => "counts");
  const restarts: number[] = [];
  const tracker = new IterationTracker(
    (index, role) => (roles[index] = role),
    (at) => restarts.push(at),
  );
  const shifts: PointShift[] = [];
  for (let i = 0; i < points; i++) {
    const shift = tracker.push({
      iteration: iteration[i]!,
      durationMs: durationMs[i]!,
      between: between[i]!,
      batch: batch[i]!,
    });
    if (shift) shifts.push(shift);
  }
  const counted = countedPoints(roles);
  const levels = segmentLevels(series, counted, shifts);
  const strides = stridesOf(series);
  const { episodes, irregular, wastedMs, levelMs } = findEpisodes(series, counted, levels, strides);
  return {
    series,
    iterations: strides.reduce((sum, stride) => sum + stride, 0),
    medianMs: median(counted.map((i) => durationMs[i]!)),
    changePoints: shifts.map((shift, k) => changePoint(series, shift, levels[k]!, levels[k + 1]!)),
    episodes,
    restarts,
    pauses: pausesOf(series, roles),
    irregular,
    wastedMs,
    variation: variationOf(levels),
    levelMs,
    periods,
  };
}

/** Points between two changes, and their level. */
export interface Segment {
  /** Indices of the points that count. */
  readonly points: readonly number[];
  readonly levelMs: number;
  /** Robust relative deviation. */
  readonly noise: number;
}

function countedPoints(roles: readonly Role[]): number[] {
  const counted: number[] = [];
  for (const [index, role] of roles.entries()) if (role === "counts") counted.push(index);
  return counted;
}

function segmentLevels(
  { durationMs }: IterationSeries,
  counted: readonly number[],
  shifts: readonly PointShift[],
): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  for (let k = 0; k <= shifts.length; k++) {
    const until = shifts[k]?.start ?? Infinity;
    const points: number[] = [];
    while (at < counted.length && counted[at]! < until) points.push(counted[at++]!);
    const logs = points.map((i) => Math.log(durationMs[i]!));
    const centre = median(logs);
    segments.push({ points, levelMs: Math.exp(centre), noise: spread(logs, centre) });
  }
  return segments;
}

/** Points on either side of a change that its figures are taken from: the step, not what came later. */
const NEARBY = 30;

function changePoint(
  series: IterationSeries,
  shift: PointShift,
  before: Segment,
  after: Segment,
): ChangePoint {
  const typical = (points: readonly number[]): number =>
    median(points.map((i) => series.durationMs[i]!));
  // All points that are known by now, not only those that were known at the alarm.
  const beforeMs = typical(before.points.slice(-NEARBY)) || shift.before;
  const afterMs = typical(after.points.slice(0, NEARBY)) || shift.after;
  const endMs = series.endMs[shift.start]!;
  return {
    iteration: series.iteration[shift.start]!,
    detectedAt: series.iteration[shift.detectedAt]!,
    beforeMs,
    afterMs,
    ratio: afterMs / beforeMs,
    direction: shift.after > shift.before ? "slower" : "faster",
    confidence: shift.confidence,
    line: series.line[shift.start]!,
    atMs: Number.isFinite(endMs) ? endMs : null,
  };
}

/** How many iterations each point covers: lines come every N iterations. */
function stridesOf({ iteration }: IterationSeries): number[] {
  const steps: number[] = [];
  for (let i = 1; i < iteration.length; i++) {
    const step = iteration[i]! - iteration[i - 1]!;
    if (step > 0) steps.push(step);
  }
  const usual = Math.max(1, median(steps) || 1);
  return Array.from(iteration, (now, i) => {
    const step = i === 0 ? usual : now - iteration[i - 1]!;
    // A jump of the counter is no iteration that anybody timed.
    return step > 0 && step <= usual ? step : usual;
  });
}

function pausesOf({ iteration, durationMs }: IterationSeries, roles: readonly Role[]): Pause[] {
  const pauses: Pause[] = [];
  for (const [index, why] of roles.entries()) {
    if (why === "counts" || why === "unknown") continue;
    pauses.push({ iteration: iteration[index]!, why, durationMs: durationMs[index]! });
  }
  return pauses;
}

/** The noise of the longest segment speaks for the job. */
function variationOf(segments: readonly Segment[]): number {
  const longest = segments.reduce((a, b) => (b.points.length > a.points.length ? b : a));
  return Number.isFinite(longest.noise) ? longest.noise : 0;
}
