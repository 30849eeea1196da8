/**
 * Changes of level, slope or spread in any series, online: any unit, any sign, drifting, seasonal or with
 * correlated noise. After every point the points since the last change are explained in one piece and in two,
 * each piece a level or a line with autoregressive noise (./piecewise-fit.ts); two pieces must be so much more
 * likely than one that chance, tried at every point of a long series, does not do it. A random walk or slow
 * waves are correlated noise, and therefore no change.
 *
 * What is reported uses points seen so far only, and stands. It comes at least 12 points after the change: a
 * burst that recovers within 8 is no change. LevelTracker is the sharper tool for iteration times.
 *
 * The prices were chosen on made series only, no public benchmark among them.
 */
import { PiecewiseFit } from "./piecewise-fit.ts";
import { median, spread } from "../../src/maths/robust.ts";
import { withoutSeason } from "./season.ts";

/** In units of twice the log likelihood: what a second piece must explain better by to be believed. */
export interface ChangePrices {
  /** A change at all: exp(-20 / 2) by chance, since it is asked at every point. */
  readonly change: number;
  /** Times log n: a slope. Three times Schwarz's price, since two short lines follow any wave. */
  readonly slope: number;
  /** A change of the spread as well: a few quiet points are soon found in heavy-tailed noise. */
  readonly spread: number;
}

export const CHANGE_PRICES: ChangePrices = { change: 20, slope: 3, spread: 8 };

/** So many wild points in a row are a burst, not a change; points are looked at when so many more are known. */
const BURST = 8;
/** Wild is so many deviations from the median around. */
const WILD = 4;
/** A loud piece must not be taken for bursts: what is wild there is measured in the noise around, in part. */
const AROUND = 0.5;
/** Points of which the noise is remembered. */
const NOISE_POINTS = 100;
/** Before so many points nothing is said: two periods of twelve, and noise that is known. */
const LEARN_POINTS = 24;
/** Fewest points of the piece before and, bursts being out already, after a change. */
const OLD_POINTS = 8;
const NEW_POINTS = 4;
/** Keeps a point at a constant cost. */
const MEMORY = 400;

export class OnlineChanges {
  readonly #prices: ChangePrices;
  /** Index of the first point that is kept. */
  #offset = 0;
  #raw: number[] = [];
  /** Without bursts, BURST points behind; how far each was from the median around. */
  #calm: number[] = [];
  #distances: number[] = [];

  constructor(prices: ChangePrices = CHANGE_PRICES) {
    this.#prices = prices;
  }

  /** The index (from 0, as pushed) of the first point of a new behaviour, when a change has become clear. */
  push(x: number): number | null {
    // A gap says nothing: the last value stands in for it, so that indices stay those of the caller.
    this.#raw.push(Number.isFinite(x) ? x : (this.#raw.at(-1) ?? 0));
    const at = this.#raw.length - 1 - BURST;
    if (at < 0) return null;
    const quantum = smallestStep(this.#raw);
    this.#calm.push(this.#calmed(at, quantum));
    if (this.#calm.length > MEMORY) this.#forget(MEMORY / 4);
    const least = this.#offset === 0 ? LEARN_POINTS : OLD_POINTS + NEW_POINTS;
    if (this.#calm.length < least) return null;
    const split = this.#bestSplit(quantum);
    if (split === null) return null;
    this.#forget(split);
    return this.#offset;
  }

  #forget(count: number): void {
    this.#raw.splice(0, count);
    this.#calm.splice(0, count);
    this.#distances.splice(0, count);
    this.#offset += count;
  }

  /** The point, or the median around it where it is part of a burst (Hampel's filter). */
  #calmed(at: number, quantum: number): number {
    const value = this.#raw[at]!;
    const around = this.#raw.slice(Math.max(0, at - BURST), at + BURST + 1);
    const centre = median(around);
    this.#distances.push(Math.abs(value - centre));
    const noise = spread(this.#distances.slice(-NOISE_POINTS), 0);
    const local = spread(around, centre);
    const reach = WILD * Math.max(noise, AROUND * local, quantum);
    return Math.abs(value - centre) <= reach ? value : centre;
  }

  /** Where the second piece begins, if two are that much better than one and both long enough. */
  #bestSplit(quantum: number): number | null {
    const values = withoutSeason(this.#calm);
    let squares = 0;
    for (let i = 1; i < values.length; i++) squares += (values[i]! - values[i - 1]!) ** 2;
    if (squares === 0) return null;
    // No piece is quieter than rounding makes it; but the one step of a silent series is no rounding.
    const rounding = Math.min(quantum ** 2 / 12, squares / (2 * values.length));
    // That digits which sums lose are no structure either.
    const leastVariance = Math.max(rounding, 1e-12 * squares);
    const { one, two, split } = new PiecewiseFit(values, leastVariance, this.#prices).best();
    if (two >= one || split < OLD_POINTS || values.length - split < NEW_POINTS) return null;
    return split;
  }
}

/** What the series is rounded to, or less. */
function smallestStep(values: readonly number[]): number {
  let least = Infinity;
  for (let i = 1; i < values.length; i++) {
    const step = Math.abs(values[i]! - values[i - 1]!);
    if (step > 0 && step < least) least = step;
  }
  return least === Infinity ? 0 : least;
}
