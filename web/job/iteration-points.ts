/** The iterations that the chart draws: columns that grow at the end and are thinned out at the other. */
import type { Iterations } from "../live/api.ts";

export interface Points {
  readonly iteration: number[];
  readonly endMs: number[];
  readonly durationMs: number[];
}

/** Kept at most; the newest of them are never thinned out. */
export const MOST_POINTS = 20_000;
export const FRESH_POINTS = 5_000;

/** Ascending in time, without what is no number: the chart needs both. */
export function pointsOf(rows: Iterations): Points {
  const points: Points = { iteration: [], endMs: [], durationMs: [] };
  append(points, rows);
  return points;
}

/** Adds those that are newer than what is there; says whether there were any. */
export function append(points: Points, rows: Iterations): boolean {
  const before = points.endMs.length;
  let last = points.endMs.at(-1) ?? -Infinity;
  for (let at = 0; at < rows.endMs.length; at++) {
    const endMs = rows.endMs[at]!;
    const durationMs = rows.durationMs[at]!;
    if (!(endMs > last) || !(durationMs > 0)) continue;
    points.endMs.push(endMs);
    points.durationMs.push(durationMs);
    points.iteration.push(rows.iteration[at] ?? Number.NaN);
    last = endMs;
  }
  return points.endMs.length > before;
}

/**
 * At most `most` points: of the old ones the lowest and the highest of every bunch stay, in their order, so that a
 * spike of one iteration is still there after days.
 */
export function thinned(points: Points, most = MOST_POINTS, fresh = FRESH_POINTS): Points {
  const count = points.endMs.length;
  if (count <= most) return points;
  const old = count - Math.min(fresh, most >> 1);
  const bunches = Math.max(1, (most - (count - old)) >> 1);
  const kept: number[] = [];
  for (let bunch = 0; bunch < bunches; bunch++) {
    const from = Math.floor((bunch * old) / bunches);
    const to = Math.floor(((bunch + 1) * old) / bunches);
    let low = from;
    let high = from;
    for (let at = from; at < to; at++) {
      if (points.durationMs[at]! < points.durationMs[low]!) low = at;
      if (points.durationMs[at]! > points.durationMs[high]!) high = at;
    }
    kept.push(Math.min(low, high));
    if (low !== high) kept.push(Math.max(low, high));
  }
  for (let at = old; at < count; at++) kept.push(at);
  return {
    iteration: kept.map((at) => points.iteration[at]!),
    endMs: kept.map((at) => points.endMs[at]!),
    durationMs: kept.map((at) => points.durationMs[at]!),
  };
}

/** Whether some of the iterations in between were left out. */
export function isThinned({ iteration }: Points): boolean {
  return (iteration.at(-1) ?? 0) - (iteration[0] ?? 0) >= iteration.length;
}

/** With all points of a part of the time in place of those that were left of it. */
export function withFiner(points: Points, part: Points): Points {
  const [fromMs, toMs] = [part.endMs[0], part.endMs.at(-1)];
  if (fromMs === undefined || toMs === undefined) return points;
  const before = points.endMs.findIndex((ms) => ms >= fromMs);
  const after = points.endMs.findIndex((ms) => ms > toMs);
  const joined = (of: keyof Points): number[] => [
    ...points[of].slice(0, before < 0 ? undefined : before),
    ...part[of],
    ...(after < 0 ? [] : points[of].slice(after)),
  ];
  return {
    iteration: joined("iteration"),
    endMs: joined("endMs"),
    durationMs: joined("durationMs"),
  };
}

/** What the same iterations took in another run; null where it has none of that number. */
export function inOtherRun(points: Points, other: Points): (number | null)[] {
  const took = new Map(other.iteration.map((number, at) => [number, other.durationMs[at]!]));
  return points.iteration.map((number) => took.get(number) ?? null);
}

/** Beyond a twentyfold span the lower values would be a line at the bottom. */
export function wantsLog(durationMs: readonly number[]): boolean {
  let low = Infinity;
  let high = 0;
  for (const value of durationMs) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return high > low * 20;
}
