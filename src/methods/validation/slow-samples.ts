/** Which of many samples of the same thing are slow: above the others' middle by a share, and far outside their spread. */
import { median, spread } from "../../maths/robust.ts";
import type { Comparable, Sample } from "./measurements.ts";

export interface Slow<Who> {
  readonly sample: Sample<Who>;
  readonly usualMs: number;
  readonly ratio: number;
}

/** Two that differ do not say which of them is slow. */
const LEAST_OTHERS = 2;
/** Spreads of the others; repeats and passes vary by themselves. */
export const OUTSIDE = 4;
/** No measurement is better than this share of it. */
export const LEAST_SPREAD = 0.015;
/** More than so many are no exception: then nothing tells what is usual. */
const MOST_SLOW = 1 / 3;

export function slowOnes<Who>({ samples }: Comparable<Who>, least: number): Slow<Who>[] {
  // The fast ones are the norm: a third that is slow must not widen the spread that it is measured with.
  const placed = samples.filter(({ isGuest }) => isGuest !== true);
  const norm = placed.length >= LEAST_OTHERS ? placed : samples;
  const sorted = norm.toSorted((a, b) => a.ms - b.ms);
  const kept = sorted.slice(0, Math.max(1, Math.ceil(sorted.length * (1 - MOST_SLOW))));
  if (kept.length < LEAST_OTHERS) return [];
  const times = kept.map(({ ms }) => ms);
  const usualMs = median(times);
  const limit =
    usualMs +
    Math.max(OUTSIDE * Math.max(spread(times), LEAST_SPREAD * usualMs), (least - 1) * usualMs);
  const slow = samples.filter(({ ms, leastMs }) => ms >= limit && leastMs > usualMs);
  if (slow.length > Math.max(1, MOST_SLOW * samples.length)) return [];
  return slow.map((sample) => ({ sample, usualMs, ratio: sample.ms / usualMs }));
}
