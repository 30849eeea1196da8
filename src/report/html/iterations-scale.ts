/** The axes of the plot of iteration times. */
import { largest, smallest } from "../../base/numbers.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { iterationWords, unitFor } from "./iterations-words.ts";

/** In the SVG's own units, about a pixel on a laptop. Above the plot are three rows of labels. */
export const WIDTH = 960;
export const HEIGHT = 300;
export const LEFT = 60;
export const RIGHT = 948;
export const TOP = 46;
export const BOTTOM = 258;

/** Longer than any iteration (30 years): a broken number, not a duration. */
const LONGEST_MS = 1e12;
/** Levels farther apart than this do not fit on a linear axis. */
const LOG_FROM = 5;
/** One slow iteration of a short series must not flatten all others: it is cut off at the top. */
const HIGHEST_OVER_LEVEL = 4;
const ROOM = 1.1;
const MIN_LABEL_GAP = 64;

interface Tick {
  /** Across or down, as the axis goes. */
  readonly at: number;
  readonly label: string;
}

export interface Scale {
  readonly isLog: boolean;
  readonly topMs: number;
  readonly unit: string;
  readonly yTicks: readonly Tick[];
  x(index: number): number;
  /** Never outside the plot: what is longer lies on its upper edge. */
  y(ms: number): number;
}

/** Whether the point is an iteration that the tracker compares. */
export function counts({ series, levelMs }: TrackedSeries, index: number): boolean {
  return isDuration(series.durationMs[index]!) && isDuration(levelMs[index]!);
}

export function isDuration(ms: number): boolean {
  return ms > 1e-9 && ms <= LONGEST_MS;
}

/** null where no point has a duration. */
export function makeScale(tracked: TrackedSeries): Scale | null {
  const counted = countedSorted(tracked);
  const durations =
    counted.length > 0 ? counted : tracked.series.durationMs.filter(isDuration).sort();
  if (durations.length === 0) return null;
  const levels = levelsOf(tracked);
  const high = largest(levels, 0) || quantile(durations, 0.5);
  const low = smallest(levels, high);
  const isLog = high > LOG_FROM * low;
  const most = Math.min(quantile(durations, 0.999), HIGHEST_OVER_LEVEL * high);
  const topMs = ROOM * Math.max(high, most);
  const bottomMs = isLog ? Math.min(low, quantile(durations, 0.001)) / ROOM : 0;
  const share = (ms: number): number =>
    isLog ? Math.log(ms / bottomMs) / Math.log(topMs / bottomMs) : ms / topMs;
  const y = (ms: number): number => {
    const inside = Math.min(topMs, Math.max(bottomMs, ms));
    return BOTTOM - (BOTTOM - TOP) * share(inside);
  };
  const points = tracked.series.iteration.length;
  const { name: unit, ms: unitMs } = unitFor(topMs);
  const yTicks = (isLog ? logSteps(bottomMs / unitMs, topMs / unitMs) : steps(topMs / unitMs)).map(
    (value) => ({ at: y(value * unitMs), label: String(Number(value.toPrecision(6))) }),
  );
  const x = (index: number): number => LEFT + ((index + 0.5) / points) * (RIGHT - LEFT);
  return { isLog, topMs, unit, yTicks, x, y };
}

function countedSorted(tracked: TrackedSeries): Float64Array {
  return tracked.series.durationMs.filter((_, i) => counts(tracked, i)).sort();
}

/** What must be seen: the usual levels and the slow ones. */
function levelsOf({ levelMs, changePoints, episodes, medianMs }: TrackedSeries): number[] {
  const usual = levelMs.filter(isDuration).sort();
  const levels = changePoints.flatMap(({ beforeMs, afterMs }) => [beforeMs, afterMs]);
  // A first and a last hundredth: a level that a handful of points have is no level.
  if (usual.length > 0) levels.push(quantile(usual, 0.01), quantile(usual, 0.99));
  for (const { type, ratio } of episodes)
    if (type === "degradation" && usual.length > 0) levels.push(ratio * quantile(usual, 0.5));
  levels.push(medianMs);
  return levels.filter(isDuration);
}

function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length))]!;
}

/** 1, 2 or 5 times a power of ten, at least as large. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((times) => times * power >= least * 0.999) ?? 10);
}

/** Round values from zero to the top, at most so many and one. */
export function steps(top: number, most = 5): number[] {
  const step = niceStep(top / most);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
}

function logSteps(bottom: number, top: number): number[] {
  const first = Math.floor(Math.log10(bottom));
  const last = Math.ceil(Math.log10(top));
  const every = Math.ceil((last - first) / 6);
  const within: number[] = [];
  for (let power = first; power <= last; power += every) {
    for (const times of every === 1 ? [1, 2, 5] : [1]) {
      const value = times * 10 ** power;
      if (value >= bottom && value <= top) within.push(value);
    }
  }
  return within;
}

/** Round iteration numbers, at the place between two points where the counter passes them. */
export function iterationTicks({ series, iterations }: TrackedSeries, scale: Scale): Tick[] {
  const { iteration } = series;
  const covered = iterations > 0 && iterations < 1e15 ? iterations : iteration.length;
  const step = Math.max(1, niceStep(covered / 9));
  const ticks: Tick[] = [];
  let isStartTick = false;
  for (const [i, now] of iteration.entries()) {
    const before = iteration[i - 1] ?? NaN;
    const round = Math.floor(now / step) * step;
    const passes = now > before ? round > before : i === 0 || now < before;
    if (!passes || !Number.isFinite(now)) continue;
    const isStart = !(now > before);
    const at = scale.x(isStart ? i : i - (now - round) / (now - before));
    if (at - (ticks.at(-1)?.at ?? -Infinity) < MIN_LABEL_GAP) {
      // Where the counter begins anew says more than a round number just before it.
      if (!isStart || isStartTick) continue;
      ticks.pop();
    }
    isStartTick = isStart;
    ticks.push({ at, label: iterationWords(isStart ? now : round) });
  }
  return ticks;
}
