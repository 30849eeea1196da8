/** One series from its first point to its last: change points, episodes, restarts, pauses. */
import { median, spread } from "../../maths/robust.ts";
import { transitionOf } from "../../maths/transition.ts";
import type {
  ChangePoint,
  IterationSeries,
  Pause,
  Ramp,
  TrackedSeries,
} from "../../model/series.ts";
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
  const batches: number[] = [];
  const tracker = new IterationTracker({
    mark: (index, role) => {
      // A long warm-up is found late: what was no iteration then is none now.
      if (role !== "warm-up" || roles[index] === "counts") roles[index] = role;
    },
    restarted: (at) => restarts.push(at),
    newBatch: (index) => batches.push(index),
  });
  const shifts: PointShift[] = [];
  for (let i = 0; i < points; i++) {
    const shift = tracker.push({
      iteration: iteration[i]!,
      durationMs: durationMs[i]!,
      between: between[i]!,
      batch: batch[i]!,
    });
    if (!shift) continue;
    const last = shifts.at(-1);
    // The same ramp, further on: known since it was first reported.
    if (last?.isRamp && last.start === shift.start)
      shifts[shifts.length - 1] = { ...shift, detectedAt: last.detectedAt };
    else shifts.push(shift);
  }
  const counted = countedPoints(roles);
  const segments = segmentsOf(series, counted, shifts, batches);
  const strides = stridesOf(series, roles);
  const { episodes, irregular, wastedMs, levelMs } = findEpisodes(
    series,
    counted,
    segments,
    strides,
  );
  return {
    series,
    iterations: strides.reduce((sum, stride) => sum + stride, 0),
    medianMs: median(counted.map((i) => durationMs[i]!)),
    changePoints: shifts.map((shift) => changePoint(series, shift, segments)),
    episodes,
    restarts,
    pauses: pausesOf(series, roles),
    irregular,
    wastedMs,
    standstillMs: standstill(series, roles, segments),
    variation: variationOf(segments),
    levelMs,
    periods,
  };
}

/** Points between two changes, and their level. */
export interface Segment {
  /** Indices of the points that count. */
  readonly points: readonly number[];
  /** Of one that rises or falls slowly: the level that it comes to. */
  readonly levelMs: number;
  /** Only of one that rises or falls slowly: the level that it comes from, and the first point of the one it comes to. */
  readonly ramp: { readonly fromMs: number; readonly end: number } | null;
  /** Robust relative deviation. */
  readonly noise: number;
  /** First point of it, counted or not. */
  readonly start: number;
  /** Whether it has nothing to do with the one before: another batch size. */
  readonly isNew: boolean;
}

function countedPoints(roles: readonly Role[]): number[] {
  const counted: number[] = [];
  for (const [index, role] of roles.entries()) if (role === "counts") counted.push(index);
  return counted;
}

function segmentsOf(
  { durationMs }: IterationSeries,
  counted: readonly number[],
  shifts: readonly PointShift[],
  batches: readonly number[],
): Segment[] {
  const fresh = new Set([0, ...batches]);
  const starts = new Set([...fresh, ...shifts.map(({ start }) => start)]);
  const ramps = new Map(shifts.flatMap((shift) => (shift.isRamp ? [[shift.start, shift]] : [])));
  const order = [...starts].sort((a, b) => a - b);
  let at = 0;
  return order.map((start, k) => {
    const until = order[k + 1] ?? Infinity;
    const points: number[] = [];
    while (at < counted.length && counted[at]! < until) points.push(counted[at++]!);
    const logs = points.map((i) => Math.log(durationMs[i]!));
    const centre = median(logs);
    const isNew = fresh.has(start);
    const reported = ramps.get(start);
    if (!reported)
      return {
        points,
        levelMs: Math.exp(centre),
        ramp: null,
        noise: spread(logs, centre),
        start,
        isNew,
      };
    // With all points that are known by now; where they show no ramp any more, as it was first reported.
    const seen = transitionOf(logs, 0);
    const isSame = seen.isRamp && seen.after > seen.before === reported.after > reported.before;
    const end = points[isSame ? seen.end : points.length] ?? points.at(-1) ?? start;
    return {
      points,
      levelMs: isSame ? Math.exp(seen.after) : reported.after,
      ramp: { fromMs: reported.before, end },
      noise: isSame ? seen.noise : spread(logs, centre),
      start,
      isNew,
    };
  });
}

/** Points on either side of a change that its figures are taken from: the step, not what came later. */
const NEARBY = 30;
const AGREES = 1.1;

function changePoint(
  series: IterationSeries,
  shift: PointShift,
  segments: readonly Segment[],
): ChangePoint {
  const at = segments.findIndex(({ start }) => start === shift.start);
  const segment = segments[at];
  const typical = (points: readonly number[] | undefined): number =>
    median((points ?? []).map((i) => series.durationMs[i]!));
  // All points that are known by now, not only those that were known at the alarm; but no figure may contradict the alarm.
  const nearBefore = typical(segments[at - 1]?.points.slice(-NEARBY));
  const nearAfter = typical(segment?.points.slice(0, NEARBY));
  const isSlower = shift.after > shift.before;
  const agrees = isSlower ? nearAfter >= AGREES * nearBefore : nearBefore >= AGREES * nearAfter;
  const [beforeMs, afterMs] = segment?.ramp
    ? [segment.ramp.fromMs, segment.levelMs]
    : agrees
      ? [nearBefore, nearAfter]
      : [shift.before, shift.after];
  const endMs = series.endMs[shift.start]!;
  return {
    iteration: series.iteration[shift.start]!,
    detectedAt: series.iteration[shift.detectedAt]!,
    beforeMs,
    afterMs,
    ratio: afterMs / beforeMs,
    direction: isSlower ? "slower" : "faster",
    ramp: segment?.ramp ? rampOf(series, shift.start, segment.ramp.end, afterMs - beforeMs) : null,
    confidence: shift.confidence,
    line: series.line[shift.start]!,
    atMs: Number.isFinite(endMs) ? endMs : null,
  };
}

function rampOf({ iteration }: IterationSeries, start: number, end: number, byMs: number): Ramp {
  const until = iteration[end]!;
  return { until, msPerIteration: byMs / Math.max(1, until - iteration[start]!) };
}

/** Times the usual step from which a counter jumped. */
const JUMP = 3;

/** How many iterations each point covers: lines come every N iterations. */
function stridesOf({ iteration, areTimes }: IterationSeries, roles: readonly Role[]): number[] {
  if (areTimes) return roles.map((role) => (role === "again" ? 0 : 1));
  const steps: number[] = [];
  for (let i = 1; i < iteration.length; i++) {
    const step = iteration[i]! - iteration[i - 1]!;
    if (step > 0) steps.push(step);
  }
  const usual = Math.max(1, median(steps) || 1);
  let last = NaN;
  return Array.from(iteration, (now, i) => {
    if (roles[i] === "again") return 0;
    const step = now - last;
    last = now;
    // A jump of the counter is no iteration that anybody timed.
    return step > 0 && step <= JUMP * usual ? step : usual;
  });
}

/** How long the job stood still, at restarts and in between. */
function standstill(
  { durationMs }: IterationSeries,
  roles: readonly Role[],
  segments: readonly Segment[],
): number {
  let sum = 0;
  for (const [index, role] of roles.entries()) {
    if (role !== "restart" && role !== "standstill") continue;
    const { levelMs = 0 } = segments.findLast(({ start }) => start <= index) ?? {};
    sum += Math.max(0, durationMs[index]! - (levelMs || 0));
  }
  return sum;
}

function pausesOf({ iteration, durationMs }: IterationSeries, roles: readonly Role[]): Pause[] {
  const pauses: Pause[] = [];
  for (const [index, why] of roles.entries()) {
    if (why === "counts" || why === "unknown" || why === "again") continue;
    pauses.push({ iteration: iteration[index]!, why, durationMs: durationMs[index]! });
  }
  return pauses;
}

/** The noise of the longest segment speaks for the job. */
function variationOf(segments: readonly Segment[]): number {
  const longest = segments.reduce((a, b) => (b.points.length > a.points.length ? b : a));
  return Number.isFinite(longest.noise) ? longest.noise : 0;
}
