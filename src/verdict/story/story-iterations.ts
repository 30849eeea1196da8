/** Which iterations a story covers, and which ones they are compared with. */
import { slowTimesOf } from "../../model/facts.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { Verdict } from "../../model/verdict.ts";
import { middle } from "./middle.ts";

export interface StoryIterations {
  /** Slow ones that most ranks hold, the one to tell of first. */
  readonly shown: readonly number[];
  /** Slow ones for comparing, at most a dozen. */
  readonly slow: readonly number[];
  /** The last before it became slow, at most a dozen; empty where it was slow from the start. */
  readonly healthy: readonly number[];
  /** Milliseconds of a usual iteration of the kind; NaN where there is none. */
  readonly slowMs: number;
  readonly healthyMs: number;
}

export interface SlowSpan {
  /** null: since the start. */
  readonly from: number | null;
  readonly until: number | null;
}

const WARM_UP = 2;
const MOST_HEALTHY = 12;
const MOST_TOLD = 4;
/** Of the way from a healthy iteration to a long one: below, an iteration between slow ones is none itself. */
const SLOWISH = 0.4;
/** Longer ones come last: their length is chance, not the lasting cause. */
const USUAL = 0.9;

/** What the suspects' evidence says of the time; else what any finding says. */
export function slowSpan({ findings, suspects, when }: Verdict): SlowSpan {
  const cited = new Set(suspects.flatMap(({ evidence }) => evidence));
  const slow = findings.filter((finding) => slowTimesOf(finding));
  const found = slow.find(({ id }) => cited.has(id)) ?? slow[0];
  const times = found ? slowTimesOf(found) : null;
  if (!times) return { from: when.iteration, until: null };
  if (times.sinceStart === true) return { from: null, until: null };
  return { from: times.iteration, until: times.until };
}

export function storyIterations(
  ranks: readonly RankOperators[],
  { from, until }: SlowSpan,
): StoryIterations {
  const times = new Map<number, number[]>();
  for (const { iteration, durationMs } of ranks)
    for (const [place, number] of iteration.entries()) {
      if (number <= WARM_UP || !(durationMs[place]! > 0)) continue;
      const list = times.get(number);
      if (list) list.push(durationMs[place]!);
      else times.set(number, [durationMs[place]!]);
    }
  const all = [...times]
    .filter(([, list]) => 2 * list.length > ranks.length)
    .map(([number, list]) => ({ number, ms: middle(list) }))
    .sort((a, b) => a.number - b.number);
  const isInside = (number: number): boolean =>
    from === null || (number >= from && (until === null || number <= until));
  const inside = all.filter(({ number }) => isInside(number));
  const outside = all.filter(({ number }) => !isInside(number));
  const healthyMs = middle(outside.map(({ ms }) => ms));
  const usual = middle(inside.map(({ ms }) => ms));
  const slow = slowOnes(inside, healthyMs, usual, until !== null);
  const most = atShare(slow, USUAL);
  // Where it was slow from the start nothing says how long is too long, and a typical iteration tells most.
  const order = (ms: number): number =>
    Number.isNaN(healthyMs) ? Math.abs(ms - usual) : ms < most ? -ms : ms;
  return {
    shown: spread(slow.toSorted((a, b) => order(a.ms) - order(b.ms)).map(({ number }) => number)),
    slow: slow.slice(0, MOST_HEALTHY).map(({ number }) => number),
    healthy: outside.slice(-MOST_HEALTHY).map(({ number }) => number),
    slowMs: middle(slow.map(({ ms }) => ms)),
    healthyMs,
  };
}

interface Timed {
  readonly number: number;
  readonly ms: number;
}

/**
 * All of the span where most of it is slow: to measure by the longest would leave but the hiccups, and call their length
 * the job's. Where slow ones come now and then, with healthy ones between them, those that are long for the span; not by
 * the longest, which may be chance, but by the next: one spike is no fault (localize/own-time.ts).
 */
function slowOnes(
  inside: readonly Timed[],
  healthyMs: number,
  usual: number,
  isOver: boolean,
): readonly Timed[] {
  const limitOf = (longMs: number): number => healthyMs + SLOWISH * (longMs - healthyMs);
  // What comes now and then has a last time; what lasts need not be far from healthy to be slow.
  const isLasting = usual > (isOver ? limitOf(atShare(inside, USUAL)) : healthyMs);
  if (isLasting) return inside;
  const longest = inside.map(({ ms }) => ms).sort((a, b) => b - a);
  const limit = limitOf(longest[1] ?? longest[0] ?? 0);
  return inside.filter(({ ms }) => !(ms < limit));
}

/** The length that so many of them stay below. */
function atShare(some: readonly Timed[], share: number): number {
  const sorted = some.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.floor(share * sorted.length)] ?? NaN;
}

/** The first one, then the middle: a second try that is no neighbour in length of the first fails for other reasons. */
function spread(numbers: readonly number[]): number[] {
  const places = [0, numbers.length >> 1, 1, (numbers.length >> 1) + 1];
  return [...new Set(places)].flatMap((place) => numbers[place] ?? []).slice(0, MOST_TOLD);
}
