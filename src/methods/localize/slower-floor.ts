/**
 * Communication that got slow from an iteration on. Floors hold no waiting, so that they are quiet where iteration
 * times are not, as own times are: a slow network shows in them before it shows in the job.
 */
import { median } from "../../maths/robust.ts";
import { areFloorsCalm, SLOW, type FloorSeries } from "./progressive/observe-all.ts";
import { areApart } from "./progressive/series.ts";

export interface SlowerFloor {
  /** Number of the first slow iteration and of the last; `until` is null where it still is. */
  readonly from: number;
  readonly to: number;
  readonly until: number | null;
  /** Milliseconds an iteration. */
  readonly growthMs: number;
}

/** What costs less than this share of an iteration is no news. */
const MATTERS = 0.01;
/** Iterations of a rise that still lasts, and of one that came to an end. */
const FEWEST = 3;
const FEWEST_PAST = 5;

/** The one that costs most; `iterations` are those of the floors, `totalMs` how long they took. */
export function slowerFloor(
  floors: readonly FloorSeries[],
  iterations: readonly number[],
  totalMs: readonly number[],
): SlowerFloor | null {
  const least = MATTERS * median(totalMs);
  const isCalm = areFloorsCalm(floors, median(totalMs));
  let worst: SlowerFloor | null = null;
  for (const { floorMs } of floors) {
    if (!mayHaveRisen(floorMs, least)) continue;
    const rise = riseOf(floorMs);
    if (
      !rise ||
      (!isCalm && !rise.isApart) ||
      rise.growthMs < least ||
      rise.growthMs <= (worst?.growthMs ?? 0)
    )
      continue;
    const to = iterations[rise.to]!;
    const until = rise.to === iterations.length - 1 ? null : to;
    worst = { from: iterations[rise.from]!, to, until, growthMs: rise.growthMs };
  }
  return worst;
}

/** Most never do. */
function mayHaveRisen(floorMs: Float64Array, leastMs: number): boolean {
  let [low, high] = [Infinity, -Infinity];
  for (const ms of floorMs) {
    if (ms < low) low = ms;
    if (ms > high) high = ms;
  }
  return high - low >= leastMs && high >= SLOW * low;
}

interface Rise {
  readonly from: number;
  readonly to: number;
  readonly growthMs: number;
  /** Whether even bursts were never as long before. */
  readonly isApart: boolean;
}

/**
 * The longest stretch above the level that the others have: floors jump from one level to another, so that the gap
 * between the levels parts them, and what lies above it must hang together.
 */
function riseOf(floorMs: Float64Array): Rise | null {
  const known = [...floorMs.keys()].filter((i) => !Number.isNaN(floorMs[i]!));
  const limit = levelBetween(known.map((i) => floorMs[i]!));
  let from = -1;
  let best = { from: 0, to: -1, length: 0 };
  let length = 0;
  for (const i of known) {
    if (floorMs[i]! < limit) {
      from = -1;
      continue;
    }
    length = from < 0 ? 1 : length + 1;
    if (from < 0) from = i;
    if (length >= best.length) best = { from, to: i, length };
  }
  const inside = known.filter((i) => i >= best.from && i <= best.to).map((i) => floorMs[i]!);
  const outside = known.filter((i) => i < best.from || i > best.to).map((i) => floorMs[i]!);
  // There must be a before; communication that was slow at first and is no longer is another question.
  const before = known.filter((i) => i < best.from).length;
  const isPast = best.to < known.at(-1)!;
  if (inside.length < (isPast ? FEWEST_PAST : FEWEST) || before < FEWEST) return null;
  const [slow, usual] = [median(inside), median(outside)];
  const stray = outside.filter((ms) => ms >= limit).length;
  if (slow < SLOW * usual || stray > STRAY * outside.length) return null;
  const isApart = areApart(outside, inside);
  return { from: best.from, to: best.to, growthMs: slow - usual, isApart };
}

/** Single slow ones outside the stretch that may be chance. */
const STRAY = 0.15;

/** Two means: where the values part into a lower and an upper level. */
function levelBetween(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  let [low, high] = [sorted[0]!, sorted.at(-1)!];
  for (let round = 0; round < 16; round++) {
    const limit = (low + high) / 2;
    const lower = sorted.filter((value) => value < limit);
    const upper = sorted.filter((value) => value >= limit);
    if (lower.length === 0 || upper.length === 0) break;
    const next: [number, number] = [median(lower), median(upper)];
    if (next[0] === low && next[1] === high) break;
    [low, high] = next;
  }
  return (low + high) / 2;
}
