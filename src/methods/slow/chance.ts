/**
 * What leads do by chance, as the others' leads show it at the same moment: how far they shift, and how heavy the tails are. Only
 * what grows counts: where one rank becomes slow, the others' leads collapse.
 */
import { logStudent, type Tails } from "../../maths/shift-odds.ts";

/** Healthy ranks of a role agree to so much of a block; that is worth so many observations. */
export const USUAL_CHANCE = 0.02;
const USUAL_WORTH = 3;
/** Degrees of freedom that chance may have, and how probable each is before the others are seen. */
const TAILS: Tails = [
  [4, 0.6],
  [8, 0.2],
  [16, 0.1],
  [32, 0.1],
];
/** Leaving one out of so many changes nothing, where it is no outlier. */
const MANY = 30;
const OUTLIER = 3;

export interface Chance {
  readonly variance: number;
  /** Others that were seen. */
  readonly count: number;
  readonly tails: Tails;
}

/** NaN: not known. `usual`: the shift to expect before any other was seen. */
export function chanceOf(
  growths: Float64Array,
  isLeftOut: (index: number) => boolean,
  usual = USUAL_CHANCE,
): Chance {
  let squares = 0;
  let count = 0;
  for (let i = 0; i < growths.length; i++) {
    const growth = growths[i]!;
    if (Number.isNaN(growth) || isLeftOut(i)) continue;
    count++;
    if (growth > 0) squares += growth * growth;
  }
  const variance = (USUAL_WORTH * usual ** 2 + 2 * squares) / (USUAL_WORTH + count);
  const logs = TAILS.map(([degrees, weight]) => {
    const scale = Math.sqrt((variance * (degrees - 2)) / degrees);
    let log = Math.log(weight);
    for (let i = 0; i < growths.length; i++)
      if (growths[i]! > 0 && !isLeftOut(i)) log += logStudent(growths[i]!, scale, degrees);
    return log;
  });
  const top = Math.max(...logs);
  const total = logs.reduce((sum, log) => sum + Math.exp(log - top), 0);
  const tails = TAILS.map(([degrees], i) => [degrees, Math.exp(logs[i]! - top) / total] as const);
  return { variance, count, tails };
}

/** Of each one, the chance that the others show. */
export function chanceBeside(
  growths: Float64Array,
  isAssumed: (index: number) => boolean,
  usual = USUAL_CHANCE,
): (index: number) => Chance {
  const all = chanceOf(growths, isAssumed, usual);
  return (index) => {
    const growth = growths[index]!;
    const isPlain = !(growth > 0 && growth * growth > OUTLIER * all.variance);
    if (all.count > MANY && isPlain) return all;
    return chanceOf(growths, (i) => i === index || isAssumed(i), usual);
  };
}

/**
 * Scale of chance for a shift with this error: what the others' shifts do has the usual noise in it already, as far as they are
 * many; `beside`: the growth of ranks that are slow by assumption, of which those beside them take a little part.
 */
export function scaleOf(
  { variance, count }: Chance,
  error: number,
  usualError: number,
  beside = 0,
): number {
  const known = count / (USUAL_WORTH + count);
  const own = Math.max(0, error ** 2 - known * Math.min(usualError ** 2, variance));
  return Math.sqrt(variance + beside ** 2 + own);
}
