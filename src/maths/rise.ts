/**
 * Where a quantity rose that is seen only through bounds from above: each point is at most so large, and some
 * points are tight, that is as large as they look. Short series count (two points before, three after), so the
 * test is simple: every point of the beginning of a rise lies clearly above the level before.
 */
import { median, TO_DEVIATION } from "./robust.ts";

/** One point an index, NaN where there is none. */
export interface Bounds {
  readonly value: Float64Array;
  /** 1 where the value is the quantity itself, not only a bound. */
  readonly tight: Uint8Array;
}

export interface Rise {
  /** Indices; `end` is the first one after it, or the length where it lasts. */
  readonly start: number;
  readonly end: number;
  readonly before: number;
  readonly after: number;
}

/** Points that must lie above before a rise is believed, and how many of them, the first included, must be tight. */
const CONFIRM = 3;
const CONFIRM_TIGHT = 2;
/** Points from which the level is known, and how far back it reaches. */
const LEARN = 2;
const MEMORY = 16;

/** The rise that cost most (height by length); null where none is higher than `least`. */
export function largestRise(bounds: Bounds, least: number): Rise | null {
  const { value } = bounds;
  const seen: number[] = [];
  for (let i = 0; i < value.length; i++) if (!Number.isNaN(value[i]!)) seen.push(i);
  let best: Rise | null = null;
  /** Positions in `seen` of the present level's points. */
  let level: number[] = [];
  for (let at = 0; at < seen.length; at++) {
    const before = levelOf(bounds, level);
    if (level.length < LEARN || !begins(bounds, seen.slice(at, at + CONFIRM), before + least)) {
      level = [...level, seen[at]!].slice(-MEMORY);
      continue;
    }
    const last = lastAbove(value, seen, at, before + least / 2);
    const tight = seen.slice(at, last + 1).filter((i) => bounds.tight[i] === 1);
    const end = seen[last + 1] ?? value.length;
    const rise = { start: seen[at]!, end, before, after: median(tight.map((i) => value[i]!)) };
    if (!best || weight(rise) > weight(best)) best = rise;
    at = last;
  }
  return best;
}

/** Change from point to point, as a standard deviation; NaN of fewer than three points. A step does not matter. */
export function jitter({ value, tight }: Bounds): number {
  const values = [...value].filter((_, i) => tight[i] === 1);
  if (values.length < 3) return NaN;
  const steps = values.slice(1).map((next, i) => Math.abs(next - values[i]!));
  return (TO_DEVIATION * median(steps)) / Math.SQRT2;
}

/** Typical value within the range as far as the bounds tell; NaN where there are none. */
export function levelWithin(bounds: Bounds, start: number, end: number): number {
  const points: number[] = [];
  for (let i = start; i < end; i++) if (!Number.isNaN(bounds.value[i]!)) points.push(i);
  return points.length > 0 ? levelOf(bounds, points) : NaN;
}

/** A bound says that the quantity is no larger, so the least of them counts where tight points are missing. */
function levelOf({ value, tight }: Bounds, points: readonly number[]): number {
  const sure = points.filter((i) => tight[i] === 1).map((i) => value[i]!);
  if (sure.length >= LEARN) return median(sure);
  return points.reduce((least, i) => Math.min(least, value[i]!), Infinity);
}

function begins({ value, tight }: Bounds, points: readonly number[], floor: number): boolean {
  if (points.length < CONFIRM) return false;
  const sure = points.filter((i) => tight[i] === 1).length;
  const isSure = tight[points[0]!] === 1 && sure >= CONFIRM_TIGHT;
  return isSure && points.every((i) => value[i]! > floor);
}

/** One point below is an exception, two end it. */
function lastAbove(
  value: Float64Array,
  seen: readonly number[],
  from: number,
  floor: number,
): number {
  let last = from;
  for (let at = from; at < seen.length && at - last <= 2; at++) {
    if (value[seen[at]!]! > floor) last = at;
  }
  return last;
}

function weight({ start, end, before, after }: Rise): number {
  return (after - before) * (end - start);
}
