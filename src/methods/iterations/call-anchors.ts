/**
 * Where iterations end. One place of the pattern is chosen and known by the few calls in front of it; every
 * occurrence in the whole sequence ends an iteration, so that calls inserted elsewhere (an evaluation, a
 * checkpoint, a log) do no harm, and after a break the count goes on by itself.
 *
 * Which place: where the calls of the step (gradients, norm, parameters) give way to those of the passes, and
 * the rank pauses longest: there lie the optimizer and the data loader. The pause
 * alone will not do: ranks of a pipeline wait longest in the middle of an iteration, or for its gradients. The calls in front of the place, not those behind it,
 * because an evaluation begins like an iteration but does not end like one. The moment is that of the next
 * call, because logs take the optimizer's time into the iteration that it ends.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { Level, Run } from "../../maths/period-runs.ts";
import { isSmall, P2P, type CallClass, type CallSequence } from "./call-classes.ts";

/** Of an iteration. Gradients that are reduced under the last backward pass stay below. */
const MOST_SPAN = 0.5;

export interface Anchor {
  /** The last calls of an iteration. */
  readonly gram: Int32Array;
  /** A class of the step, where there is one: it counts the iterations when an end is lost. */
  readonly marker: number;
  readonly markersPerIteration: number;
}

/** One call alone might be logged elsewhere too. */
const LEAST_GRAM = 4;
/** Longer ones are rarely met whole. */
const MOST_GRAM = 64;
/** Of the time of an iteration. */
const LONG_PAUSE = 0.5;
/** Copies of the pattern that tell the typical gap. */
const MOST_COPIES = 64;

export function chooseAnchor(calls: CallSequence, level: Level): Anchor {
  const { pattern, period, runs } = level;
  const longest = runs.reduce((a, b) => (b.end - b.start >= a.end - a.start ? b : a));
  const gaps = typicalGaps(calls.timesNs, longest, period);
  const step = stepClasses(calls.classes, pattern);
  const pause = longPause(calls.classes, pattern, gaps);
  const places = pause ?? endPlaces(calls.classes, pattern, step);
  places.sort((a, b) => gaps[b]! - gaps[a]!);
  let best = { place: places[0]!, length: Infinity };
  for (const place of places) {
    const length = uniqueLength(pattern, place);
    if (length < best.length) best = { place, length };
    if (length <= MOST_GRAM) break;
  }
  const length = Math.min(period, Math.max(LEAST_GRAM, best.length));
  const gram = Int32Array.from({ length }, (_, i) => at(pattern, best.place - length + i));
  const { marker, count } = chooseMarker(calls.classes, pattern, step);
  return { gram, marker, markersPerIteration: count };
}

/** The rarest class of the step; a large one, because small ones are logged elsewhere too. */
function chooseMarker(
  classes: readonly CallClass[],
  pattern: Int32Array,
  step: ReadonlySet<number>,
): { marker: number; count: number } {
  const counts = new Map<number, number>();
  for (const symbol of pattern) counts.set(symbol, (counts.get(symbol) ?? 0) + 1);
  const cost = (symbol: number): number =>
    (step.has(symbol) ? 0 : 2) + (isSmall(classes[symbol]!) ? 1 : 0);
  let best = { marker: pattern[0]!, count: counts.get(pattern[0]!)! };
  for (const [marker, count] of counts) {
    const better = cost(marker) - cost(best.marker);
    if (better < 0 || (better === 0 && count < best.count)) best = { marker, count };
  }
  return best;
}

/** Indices of the calls after which an iteration has ended. */
export function endsOf(symbols: Int32Array, gram: Int32Array, from: number, to: number): number[] {
  const ends: number[] = [];
  const last = gram.length - 1;
  for (let i = from + last; i < to; i++) {
    let k = last;
    while (k >= 0 && symbols[i - last + k] === gram[k]) k--;
    if (k < 0) ends.push(i);
  }
  return ends;
}

/**
 * The place at which most of an iteration passes, where a rank issues its calls at once and then waits for its
 * device. Not behind P2P calls nor between calls of one role: a wait for others, in the middle of the iteration.
 */
function longPause(
  classes: readonly CallClass[],
  pattern: Int32Array,
  gaps: Float64Array,
): number[] | null {
  const total = gaps.reduce((sum, gap) => sum + gap, 0);
  const place = gaps.findIndex((gap) => gap > LONG_PAUSE * total);
  if (place < 0) return null;
  const before = classes[at(pattern, place - 1)]!;
  const isEnd = before.kind !== P2P && before.role !== classes[pattern[place]!]!.role;
  return isEnd ? [place] : null;
}

/** Places where the step ends; in a pattern without one, any, behind a collective where possible. */
function endPlaces(
  classes: readonly CallClass[],
  pattern: Int32Array,
  step: ReadonlySet<number>,
): number[] {
  const all = [...pattern.keys()];
  const before = (place: number): number => at(pattern, place - 1);
  const own = all.filter((place) => step.has(before(place)));
  const last = own.filter((place) => !step.has(pattern[place]!));
  const collective = all.filter((place) => classes[before(place)]!.kind !== P2P);
  return [last, own, collective].find((places) => places.length > 0) ?? all;
}

/** Median time in front of each call of the pattern, over the copies in a run. */
function typicalGaps(timesNs: Float64Array, { start, end }: Run, period: number): Float64Array {
  const copies = Math.min(MOST_COPIES, Math.floor((end - start) / period) - 1);
  const first = end - copies * period;
  const phase = (first - start) % period;
  const gaps = new Float64Array(period);
  const sorted = new Float64Array(copies);
  for (let i = 0; i < period; i++) {
    for (let copy = 0; copy < copies; copy++) {
      const call = first + copy * period + i;
      sorted[copy] = timesNs[call]! - timesNs[call - 1]!;
    }
    sorted.sort();
    gaps[(phase + i) % period] = sorted[copies >> 1]!;
  }
  return gaps;
}

/** How many calls in front of a place tell it from every other place of the cyclic pattern. */
function uniqueLength(pattern: Int32Array, place: number): number {
  let longest = 0;
  for (let other = 0; other < pattern.length; other++) {
    if (other === place) continue;
    let same = 0;
    while (
      same < pattern.length &&
      at(pattern, place - 1 - same) === at(pattern, other - 1 - same)
    ) {
      same++;
    }
    longest = Math.max(longest, same);
  }
  return longest + 1;
}

function at(pattern: Int32Array, index: number): number {
  const { length } = pattern;
  return pattern[((index % length) + length) % length]!;
}

/**
 * The calls of an iteration that belong to its optimizer step rather than to its passes: gradients, norm,
 * parameters. Passes fill the iteration, so their calls are spread over it; those of the step lie together.
 * Inner levels do not tell: the buckets of the gradients repeat, too.
 * Classes of the step; empty where nothing tells them from the passes.
 */
function stepClasses(classes: readonly CallClass[], pattern: Int32Array): Set<number> {
  const isCollective = (symbol: number): boolean => classes[symbol]!.kind !== P2P;
  const isLarge = (symbol: number): boolean => isCollective(symbol) && !isSmall(classes[symbol]!);
  const isNorm = (symbol: number): boolean => isCollective(symbol) && isSmall(classes[symbol]!);
  const groupOf = (symbol: number): number => classes[symbol]!.group;
  // By group first: forward and backward passes have classes of their own, but not groups. Small ones by
  // class: the loss of every micro-batch is averaged in the group of the gradients.
  const large = together(pattern, isLarge, groupOf);
  const small = together(pattern, isNorm, (symbol) => symbol);
  if (large.size > 0) return new Set([...large, ...small]);
  return new Set([...together(pattern, isLarge, (symbol) => symbol), ...small]);
}

/** Symbols whose key occurs in one part of the cyclic pattern only. */
function together(
  pattern: Int32Array,
  counts: (symbol: number) => boolean,
  keyOf: (symbol: number) => number,
): Set<number> {
  const places = new Map<number, number[]>();
  pattern.forEach((symbol, i) => {
    if (!counts(symbol)) return;
    getOrInsert(places, keyOf(symbol), () => []).push(i);
  });
  const { length } = pattern;
  const isTogether = (at: readonly number[]): boolean =>
    at.some((place, i) => {
      const next = at[i + 1] ?? at[0]! + length;
      return length - (next - place) + 1 <= MOST_SPAN * length;
    });
  const keys = new Set([...places].flatMap(([key, at]) => (isTogether(at) ? [key] : [])));
  return new Set(pattern.filter((symbol) => counts(symbol) && keys.has(keyOf(symbol))));
}
