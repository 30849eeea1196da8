/** Durations of iterations out of the times at which lines were written, or out of throughput. */
import type { SeriesColumns } from "../series-columns.ts";

/** A time that is right to a second tells a stretch of this length to 2 %. */
const LONG_MS = 50_000;
/** And one of this length to 5 %, half of the smallest change that counts: what times alone can give where steps are short. */
const FOLD_MS = 20_000;
/** Milliseconds for 1,000 tokens or samples: where there are no times, ratios are all there is. */
const UNSCALED = 1e6;

/** Whether the times are of whole seconds and closer together than that allows. */
export function isCoarse({ count, endMs }: SeriesColumns): boolean {
  const gaps: number[] = [];
  for (let at = 0; at < count; at++) {
    const ms = endMs[at]!;
    if (ms % 1000 > 0) return false;
    const gap = at > 0 ? ms - endMs[at - 1]! : NaN;
    if (gap >= 0) gaps.push(gap);
  }
  gaps.sort((a, b) => a - b);
  return gaps.length > 0 && gaps[gaps.length >> 1]! < LONG_MS;
}

/**
 * Time since the point before, by iterations. Unknown for the first point, after a counter that went back, and
 * where a time is missing.
 */
export function byTimes({ count, iteration, endMs, durationMs }: SeriesColumns): void {
  for (let at = 0; at < count; at++) {
    const iterations = at > 0 ? iteration[at]! - iteration[at - 1]! : 0;
    const elapsedMs = at > 0 ? endMs[at]! - endMs[at - 1]! : NaN;
    durationMs[at] = iterations > 0 && elapsedMs >= 0 ? elapsedMs / iterations : NaN;
  }
}

/** Counters that go back so often are those of several processes that write to one file at the same time. */
const GOES_BACK = 0.25;
const FEWEST_POINTS = 20;

/** Of several processes in one file: only who is ahead is followed. A job that was started anew goes back seldom. */
export function followLeader(columns: SeriesColumns): void {
  const { count, iteration } = columns;
  let back = 0;
  for (let at = 1; at < count; at++) if (!(iteration[at]! > iteration[at - 1]!)) back++;
  if (count < FEWEST_POINTS || back < GOES_BACK * count) return;
  let kept = 0;
  for (let at = 0; at < count; at++) {
    if (kept > 0 && !(iteration[at]! > iteration[kept - 1]!)) continue;
    columns.move(at, kept++);
  }
  columns.count = kept;
}

/** Joins points until a stretch is long enough for times of whole seconds. */
export function foldCoarse(columns: SeriesColumns): void {
  const { count, iteration, endMs, line, batch, between } = columns;
  let kept = 0;
  let bits = 0;
  for (let at = 0; at < count; at++) {
    bits |= between[at]!;
    const goesOn = at + 1 < count && iteration[at + 1]! > iteration[at]!;
    const isShort = kept > 0 && endMs[at]! - endMs[kept - 1]! < FOLD_MS;
    const follows = kept > 0 && iteration[at]! > iteration[kept - 1]!;
    // The last one before a counter goes back is kept, as is the first after it.
    if (isShort && follows && goesOn) continue;
    iteration[kept] = iteration[at]!;
    endMs[kept] = endMs[at]!;
    line[kept] = line[at]!;
    batch[kept] = batch[at]!;
    between[kept] = bits;
    kept++;
    bits = 0;
  }
  columns.count = kept;
}

/** The inverse of the throughput, scaled so that stretches without pauses add up to the time they took. */
export function byRate(columns: SeriesColumns): void {
  const { count, iteration, endMs, rate, between, durationMs } = columns;
  let elapsedMs = 0;
  let inverse = 0;
  for (let at = 1; at < count; at++) {
    const iterations = iteration[at]! - iteration[at - 1]!;
    const ms = endMs[at]! - endMs[at - 1]!;
    if (!(iterations > 0 && ms >= 0 && rate[at]! > 0) || between[at] !== 0) continue;
    elapsedMs += ms;
    inverse += iterations / rate[at]!;
  }
  const scale = elapsedMs > 0 && inverse > 0 ? elapsedMs / inverse : UNSCALED;
  for (let at = 0; at < count; at++) durationMs[at] = rate[at]! > 0 ? scale / rate[at]! : NaN;
}

/** What a line times is a part of the iteration where the lines themselves are so many times as far apart. */
const A_PART = 1.5;
/** Stretches that such a comparison needs. */
const FEWEST = 8;

/** Milliseconds an iteration from line to line, where nothing was announced in between; with the points they end at. */
function stretches({ count, iteration, endMs, between }: SeriesColumns): [number, number][] {
  const found: [number, number][] = [];
  for (let at = 1; at < count; at++) {
    const iterations = iteration[at]! - iteration[at - 1]!;
    const ms = endMs[at]! - endMs[at - 1]!;
    if (iterations > 0 && ms > 0 && between[at] === 0) found.push([at, ms / iterations]);
  }
  return found;
}

/** Whether what the lines say an iteration took is a part of what it took: the forward pass, one of two models. */
export function areParts(columns: SeriesColumns): boolean {
  const ratios = stretches(columns).flatMap(([at, ms]) =>
    columns.durationMs[at]! > 0 ? [ms / columns.durationMs[at]!] : [],
  );
  return ratios.length >= FEWEST && quantile(ratios, 0.5) >= A_PART;
}

/** Whether iterations vary less by the lines' times than by their rates. */
export function areSteadier(columns: SeriesColumns): boolean {
  const both = stretches(columns).filter(([at]) => columns.rate[at]! > 0);
  const times = both.map(([, ms]) => Math.log(ms));
  const rates = both.map(([at]) => Math.log(columns.rate[at]!));
  return both.length >= FEWEST && middleHalf(times) < middleHalf(rates);
}

/** How far apart the quarters are between which the middle half lies. */
function middleHalf(values: readonly number[]): number {
  return quantile(values, 0.75) - quantile(values, 0.25);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))]!;
}
