/** The part of a series that repeats itself, found and taken away with what is known so far. */
import { median } from "../../src/maths/robust.ts";

const LONGEST = 60;
const SHORTEST = 3;
/** A period must have been seen so often: fewer look like chance. */
const PERIODS = 2.5;
/** How alike the steps of two periods must be: more than those of correlated noise. */
const ALIKE = 0.55;
/** A multiple of the period is as alike; it must be better by this to be preferred. */
const CLEARLY = 0.05;

/** Minus each phase's typical distance from the mean of one period around: levels and trends stay. */
export function withoutSeason(values: readonly number[]): readonly number[] {
  const period = periodOf(values);
  if (period === 0) return values;
  const sums = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) sums[i + 1] = sums[i]! + values[i]!;
  const phases: number[][] = Array.from({ length: period }, () => []);
  const half = period >> 1;
  // An even period has no middle: the two windows nearest to it, half of each.
  const odd = period % 2;
  for (let i = half; i + half + 1 <= values.length; i++) {
    const late = sums[i + half + 1]! - sums[i - half + 1 - odd]!;
    const early = sums[i + half + odd]! - sums[i - half]!;
    phases[i % period]!.push(values[i]! - (late + early) / (2 * period));
  }
  const pattern = phases.map(median);
  return values.map((value, i) => value - pattern[i % period]!);
}

/** By the autocorrelation of the steps, which knows nothing of trends; 0 for none. */
export function periodOf(values: readonly number[]): number {
  const n = values.length - 1;
  const mean = (values[n]! - values[0]!) / n;
  const steps = Float64Array.from({ length: n }, (_, i) => values[i + 1]! - values[i]! - mean);
  let square = 0;
  for (const step of steps) square += step * step;
  let best = 0;
  let most = ALIKE;
  for (let lag = SHORTEST; lag <= Math.min(LONGEST, values.length / PERIODS); lag++) {
    let product = 0;
    for (let i = lag; i < n; i++) product += steps[i]! * steps[i - lag]!;
    const alike = (product / (n - lag)) * (n / square);
    if (alike <= most) continue;
    most = alike + CLEARLY;
    best = lag;
  }
  return best;
}
