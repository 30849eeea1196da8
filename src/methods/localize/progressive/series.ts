/** Times by iteration, normal ones first, and what became of them in the slow ones. */
import { median, spread } from "../../../maths/robust.ts";
import type { Durations, Split } from "./source.ts";

export function iterationsOf({ normal, slow, also = [] }: Split): number[] {
  return [...normal, ...slow, ...also];
}

/** Of a series, its normal and its slow iterations, as far as they are known (not NaN). */
function parts(series: Float64Array, { normal, slow }: Split): [Float64Array, Float64Array] {
  const known = (part: Float64Array): Float64Array => part.filter((ms) => !Number.isNaN(ms));
  const behind = normal.length + slow.length;
  return [known(series.subarray(0, normal.length)), known(series.subarray(normal.length, behind))];
}

/** Sum of the places of each iteration. */
export function sums(durations: Durations, places: number, of?: readonly number[]): Float64Array {
  const series = new Float64Array(durations.length / places);
  for (let i = 0; i < series.length; i++) {
    if (of) for (const place of of) series[i]! += durations[i * places + place]!;
    else for (let place = 0; place < places; place++) series[i]! += durations[i * places + place]!;
  }
  return series;
}

/** The median normal iteration's, and the median slow one's. */
function levels(series: Float64Array, split: Split): readonly [number, number] {
  const [usual, slow] = parts(series, split);
  return [median(usual), median(slow)];
}

/** How much more in the median slow iteration than in the median normal one. */
export function growth(series: Float64Array, split: Split): number {
  const [usual, slow] = levels(series, split);
  return slow - usual;
}

/** The lesser of several sides' durations, element by element: nobody waits less than who came last. */
export function least(all: readonly Durations[]): Durations {
  const floor = Float64Array.from(all[0]!);
  for (const durations of all)
    for (let i = 0; i < floor.length; i++)
      if (durations[i]! < floor[i]! || Number.isNaN(floor[i]!)) floor[i] = durations[i]!;
  return floor;
}

/** The same where all sides are known, NaN elsewhere: the one that is not may have come last. */
export function leastOfAll(all: readonly Durations[]): Durations {
  const floor = least(all);
  for (const durations of all)
    for (let i = 0; i < floor.length; i++) if (Number.isNaN(durations[i]!)) floor[i] = NaN;
  return floor;
}

/** Slow over normal; NaN where there is nothing to compare. */
export function ratio(series: Float64Array, split: Split): number {
  const [usual, slow] = levels(series, split);
  return slow / usual;
}

/** A level of its own: so many times the longest of the others, over so many iterations of both kinds. */
const APART = 1.5;
const FEWEST_APART = 10;

/** Whether all of some times are far above all of the others: bursts, however many, do not part like that. */
export function areApart(usual: ArrayLike<number>, slow: ArrayLike<number>): boolean {
  if (usual.length < FEWEST_APART || slow.length < FEWEST_APART) return false;
  let [longest, shortest] = [-Infinity, Infinity];
  for (let i = 0; i < usual.length; i++) longest = Math.max(longest, usual[i]!);
  for (let i = 0; i < slow.length; i++) shortest = Math.min(shortest, slow[i]!);
  return shortest >= APART * longest;
}

/** The same of a series' slow and normal iterations. */
export function partsApart(series: Float64Array, split: Split): boolean {
  return areApart(...parts(series, split));
}

/** Pairs of a normal and a slow iteration that may be the wrong way round, where there are many of each. */
const WRONG_WAY = 0.05;
const MANY = 10;
const FEWEST = 3;

/**
 * Whether slow iterations stand out from normal ones: in nearly all pairs longer, and by so many deviations.
 * Iterations that are long by chance have a longest wait, too; it is then no longer than in others.
 */
export function standsOut(series: Float64Array, split: Split, sigmas: number): boolean {
  const [usual, slow] = parts(series, split);
  if (usual.length < FEWEST || slow.length < FEWEST) return false;
  let longer = 0;
  for (const ms of slow) for (const other of usual) longer += Number(ms > other);
  const grew = median(slow) - median(usual);
  const pairs = usual.length * slow.length;
  const isMany = usual.length >= MANY && slow.length >= MANY;
  return longer >= pairs * (isMany ? 1 - WRONG_WAY : 1) && grew >= sigmas * spread(usual);
}
