/**
 * Is a shift a fault's, or chance's? Chance is Student's t (a mixture, where how heavy its tails are is itself uncertain). A fault
 * adds something: exponential, from a least on. The log of how much likelier the shift is with a fault than without.
 */
import { studentTail } from "./student.ts";

/** Degrees of freedom, even, and how probable each is. */
export type Tails = readonly (readonly [degrees: number, weight: number])[];

/** What a fault adds: `least` + Exp(`usual`), as ranges that are equally probable. */
export interface Effect {
  readonly least: number;
  readonly edges: readonly number[];
}

/** Ranges of an effect, in place of a smooth curve: their integrals have closed forms. */
const RANGES = 16;
/** Nothing is taken to add more than so many times the usual. */
const MOST = 5;
/** Shifts so many scales below the least effect all say the same. */
const FAR_BELOW = 6;

export function effectOf(least: number, usual: number): Effect {
  const edges = Array.from({ length: RANGES }, (_, i) => -usual * Math.log(1 - i / RANGES));
  return { least, edges: [...edges, MOST * usual] };
}

/** Log of how much likelier `shift` is if an effect was added to chance of this scale. */
export function logShiftOdds(shift: number, scale: number, tails: Tails, effect: Effect): number {
  const { least, edges } = effect;
  const most = least + edges[edges.length - 1]!;
  const x = Math.max(Math.min(0, least - FAR_BELOW * scale), Math.min(most, shift));
  let fault = 0;
  let chance = 0;
  for (const [degrees, weight] of tails) {
    if (weight < 1e-9) continue;
    chance += weight * Math.exp(logStudent(x, scale, degrees));
    let above = upTo((x - least) / scale, degrees);
    let sum = 0;
    for (let i = 1; i < edges.length; i++) {
      const next = upTo((x - least - edges[i]!) / scale, degrees);
      sum += (above - next) / (edges[i]! - edges[i - 1]!);
      above = next;
    }
    fault += (weight * sum) / RANGES;
  }
  return Math.log(Math.max(fault, Number.MIN_VALUE)) - Math.log(chance);
}

function upTo(t: number, degrees: number): number {
  return studentTail(-t, degrees);
}

/** Log density of Student's t. */
export function logStudent(x: number, scale: number, degrees: number): number {
  const z = x / scale;
  return normOf(degrees) - Math.log(scale) - ((degrees + 1) / 2) * Math.log1p((z * z) / degrees);
}

const norms = new Map<number, number>();

function normOf(degrees: number): number {
  let norm = norms.get(degrees);
  if (norm === undefined) {
    norm = logGamma((degrees + 1) / 2) - logGamma(degrees / 2) - 0.5 * Math.log(Math.PI * degrees);
    norms.set(degrees, norm);
  }
  return norm;
}

/** Stirling's series, after recurrence to where it is exact to 1e-10. */
export function logGamma(x: number): number {
  let shift = 0;
  let at = x;
  for (; at < 7; at++) shift -= Math.log(at);
  const inverse = 1 / (at * at);
  return (
    shift +
    (at - 0.5) * Math.log(at) -
    at +
    0.5 * Math.log(2 * Math.PI) +
    (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / at
  );
}

/** Log of the mean of exp(logs). */
export function logMeanExp(logs: ArrayLike<number>): number {
  let top = -Infinity;
  for (let i = 0; i < logs.length; i++) top = Math.max(top, logs[i]!);
  if (top === -Infinity) return -Infinity;
  let sum = 0;
  for (let i = 0; i < logs.length; i++) sum += Math.exp(logs[i]! - top);
  return top + Math.log(sum / logs.length);
}

/**
 * Counts of rare things on one of several: log of how much likelier `own` is if they are a habit of its, geometric around `usual`,
 * than if they come to it as they come to the `others` together, who are so many (negative binomial, Gamma(½ + others' total)).
 */
export function logCountOdds(own: number, total: number, others: number, usual: number): number {
  const habit = own * Math.log(usual / (1 + usual)) - Math.log(1 + usual);
  const alpha = total + 0.5;
  const chance =
    logGamma(own + alpha) -
    logGamma(alpha) -
    logGamma(own + 1) +
    alpha * Math.log(others / (others + 1)) -
    own * Math.log(others + 1);
  // As seldom as the others, or less: no habit.
  return own <= total / others ? -Math.log(1 + usual) : habit - chance;
}
