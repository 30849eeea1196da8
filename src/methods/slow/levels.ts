/** The level of a few noisy values, and what their rests tell of noise. */
import { median, spread } from "../../maths/robust.ts";

/** No series of some dozen blocks shows reliably that neighbours are more alike. */
const MOST_CORRELATED = 0.8;
/** A rest counts for the correlation up to so many deviations: outliers say nothing of it. */
const CLIPPED_SIGMAS = 3;
/** Standard error of a median, in standard errors of a mean. */
export const MEDIAN_ERROR = 1.25;

/** The median; of few values one that a hiccup in half of them does not reach: what lasts is in all of them. */
export function lastingLevel(values: ArrayLike<number>): number {
  const { length } = values;
  if (length >= 8 || length === 0) return median(values);
  const sorted = Float64Array.from(values).sort();
  return sorted[length < 4 ? 0 : length < 6 ? 1 : 2]!;
}

export interface Noise {
  readonly sigma: number;
  /** How alike neighbours are, 0 to MOST_CORRELATED. */
  readonly correlation: number;
}

/** Of values from which their level was taken off, `levels` of them. */
export function noiseOf(rests: Float64Array, levels: number): Noise {
  const { length } = rests;
  const sigma = (spread(rests, 0) * length) / Math.max(1, length - levels);
  const most = CLIPPED_SIGMAS * sigma;
  let own = 0;
  let cross = 0;
  let last = 0;
  for (let i = 0; i < length; i++) {
    const rest = Math.max(-most, Math.min(most, rests[i]!));
    own += rest * rest;
    if (i > 0) cross += rest * last;
    last = rest;
  }
  const correlation = Math.min(MOST_CORRELATED, Math.max(0, cross / Math.max(1e-12, own)));
  return { sigma, correlation };
}

/** Standard error of a difference of levels; `per`: the sum of 1 / the number of values behind each. */
export function errorOf({ sigma, correlation }: Noise, per: number): number {
  return MEDIAN_ERROR * sigma * Math.sqrt(((1 + correlation) / (1 - correlation)) * per);
}
