/**
 * Two camps, neither of which is the exception (two ranks alone, or half of them slow): that they differ is certain,
 * which of them is slow is not.
 */
import { groupBy } from "../../base/group-by.ts";
import { largest } from "../../base/numbers.ts";
import { median, spread } from "../../maths/robust.ts";
import type { Comparable, Sample } from "./measurements.ts";
import { LEAST_SPREAD, OUTSIDE } from "./slow-samples.ts";

export interface Divided<Who> {
  readonly what: string;
  readonly fast: readonly Who[];
  readonly slow: readonly Who[];
  /** The slow camp's middle by the fast one's. */
  readonly ratio: number;
}

/** In more than half of the tests of the same things, and by the same border each time; null where they are alike. */
export function dividedBy<Who>(
  tests: readonly Comparable<Who>[],
  least: number,
  key: (who: Who) => string,
): Divided<Who> | null {
  const comparable = tests.filter(({ samples }) => samples.length >= 2);
  const keyOf = (list: readonly Who[]): string => list.map(key).sort().join();
  const all = groupBy(comparable, ({ samples }) => keyOf(samples.map(({ who }) => who)));
  for (const same of all.values()) {
    const divided = same.flatMap((one) => campsOf(one, least) ?? []);
    for (const alike of groupBy(divided, ({ slow }) => keyOf(slow)).values())
      if (2 * alike.length > same.length)
        return { ...alike[0]!, ratio: median(alike.map(({ ratio }) => ratio)) };
  }
  return null;
}

function campsOf<Who>({ what, samples }: Comparable<Who>, least: number): Divided<Who> | null {
  const sorted = samples.filter(({ isGuest }) => isGuest !== true).toSorted((a, b) => a.ms - b.ms);
  if (sorted.length < 2) return null;
  let border = 1;
  const step = (i: number): number => sorted[i]!.ms / sorted[i - 1]!.ms;
  for (let i = 2; i < sorted.length; i++) if (step(i) > step(border)) border = i;
  const [fast, slow] = [sorted.slice(0, border), sorted.slice(border)];
  const [usual, late] = [timesOf(fast), timesOf(slow)];
  const usualMs = median(usual);
  const most = largest(usual, 0);
  const gap = sorted[border]!.ms - most;
  const varies = Math.max(spread(usual), spread(late), LEAST_SPREAD * usualMs);
  if (sorted[border]!.ms < least * usualMs || gap < OUTSIDE * varies) return null;
  // What differs in truth does so every time.
  if (slow.some(({ leastMs }) => leastMs <= most)) return null;
  const who = (list: readonly Sample<Who>[]): Who[] => list.map((sample) => sample.who);
  return { what, fast: who(fast), slow: who(slow), ratio: median(late) / usualMs };
}

function timesOf(samples: readonly Sample<unknown>[]): number[] {
  return samples.map(({ ms }) => ms);
}
