/**
 * The ends of all iterations of a sequence of calls. Where the end that was learnt no longer occurs, the
 * pattern has changed for good (another batch size, another accumulation), and a new one is looked for
 * in that stretch.
 */
import { findPeriod } from "../../maths/period.ts";
import type { Level } from "../../maths/period-runs.ts";
import { chooseAnchor, endsOf, type Anchor } from "./call-anchors.ts";
import { isSmall, OTHER, REDUCES, type CallSequence, type CallClass } from "./call-classes.ts";
import { median } from "../../maths/robust.ts";

/** Times the usual repetition. */
const LONG = 5;
const FEWEST = 3;

/** Share of the pauses that must come after the same number of repetitions. */
const REGULAR = 0.8;

interface Iterations {
  readonly endings: readonly Ending[];
  /** Repetitions of the pattern in an iteration. */
  readonly repetitions: number;
}

const MOST_LAYER_CALLS = 4;

export interface Ending {
  /** Index of the last call of the iteration. */
  readonly call: number;
  readonly segment: Segment;
}

/** A stretch in which iterations look alike. */
interface Segment {
  readonly period: number;
  readonly pattern: Int32Array;
  readonly anchor: Anchor;
  /** Calls of the iteration, then of what repeats inside it, then of what it repeats in. */
  readonly periods: readonly number[];
}

export interface Endings {
  /** Ascending. */
  readonly endings: readonly Ending[];
  /** The one with most calls first. */
  readonly segments: readonly Segment[];
  /** Repetitions of the pattern in an iteration: more than one where only the clock tells them apart. */
  readonly repetitions: number;
}

/** Stretches without an end that are worth a new search, in iterations; fewer could not be confirmed. */
const LOST_ITERATIONS = 3;
const MOST_SEGMENTS = 16;

export function findEndings(calls: CallSequence): Endings | null {
  const isMore = (inner: Int32Array, outer: Int32Array): boolean =>
    isMoreThanRepetition(calls.classes, inner, outer);
  const endings: Ending[] = [];
  const segments: Segment[] = [];
  const stretches = [{ from: 0, to: calls.symbols.length }];
  for (let stretch = stretches.pop(); stretch; stretch = stretches.pop()) {
    const { from, to } = stretch;
    const found = findPeriod(calls.symbols.subarray(from, to), { isMore });
    if (!found || !isTraining(found.level, segments[0])) continue;
    const segment = makeSegment(calls, found.level, found.levels, from);
    const ends = endsOf(calls.symbols, segment.anchor.gram, from, to);
    segments.push(segment);
    // When the last iteration of the record ended nobody knows: it takes a next call to tell.
    for (const call of ends) if (call + 1 < calls.symbols.length) endings.push({ call, segment });
    if (segments.length >= MOST_SEGMENTS) break;
    let before = from;
    for (const end of [...ends.map((call) => call + 1), to]) {
      if (end - before > LOST_ITERATIONS * segment.period && end - before < to - from) {
        stretches.push({ from: before, to: end });
      }
      before = end;
    }
  }
  endings.sort((a, b) => a.call - b.call);
  if (segments.length === 0) return null;
  return { segments, ...mergeByPauses(calls, endings) };
}

/**
 * A long evaluation repeats its forward passes, too, but not what marks the end of an iteration. Sizes of
 * gradients do not depend on the batch, so that the mark outlives a change of it.
 */
function isTraining({ pattern }: Level, first: Segment | undefined): boolean {
  return !first || pattern.includes(first.anchor.marker);
}

function makeSegment(
  calls: CallSequence,
  level: Level,
  levels: readonly Level[],
  from: number,
): Segment {
  const { period, pattern } = level;
  const shifted = {
    ...level,
    runs: level.runs.map(({ start, end }) => ({ start: start + from, end: end + from })),
  };
  const inner = levels.filter((other) => other.period < period && isPart(other, level));
  const outer = levels.filter((other) => other.period > period && isPart(level, other));
  const anchor = chooseAnchor(calls, shifted);
  const sizes = (part: readonly Level[]): number[] => part.map((other) => other.period);
  return {
    period,
    pattern,
    anchor,
    // Forward and backward passes have as many calls.
    periods: [...new Set([period, ...sizes(inner).reverse(), ...sizes(outer)])],
  };
}

function isPart(inner: Level, outer: Level): boolean {
  const known = new Set(outer.pattern);
  return inner.pattern.every((symbol) => known.has(symbol));
}

/**
 * Which of the patterns that repeat inside each other is the iteration. Layers repeat in a pass, passes in a
 * micro-batch, micro-batches in an iteration, iterations between two evaluations. An outer level is more
 * than a repetition of an inner one when it
 * - reduces in a group in which the inner one does not (gradients), or sends or receives where it does not
 *   (backward passes); or adds any large call to an inner one that reduces nothing (a sharded model that
 *   accumulates gradients). Large gathers and broadcasts beside an inner level that reduces are a checkpoint;
 * - repeats the inner one's large calls a whole number of times, but in another order: a pipeline that fills
 *   and drains. An evaluation adds forward passes only, and so is no whole number of repetitions;
 * - adds any call to an inner level of a few calls of one size: those are a layer's activations.
 * Small calls alone make no iteration: a loss is logged every ten, a norm taken every one. A sharded model
 * that reduces in every micro-batch and marks its iterations only by the norm cannot be distinguished from one that
 * logs; the inner level is taken.
 */
function isMoreThanRepetition(
  classes: readonly CallClass[],
  inner: Int32Array,
  outer: Int32Array,
): boolean {
  const known = new Set(inner);
  const added = [...new Set(outer)].filter((symbol) => !known.has(symbol));
  if (added.length > 0 && isLayer(classes, inner)) return true;
  const large = (symbol: number): boolean => !isSmall(classes[symbol]!);
  const roles = new Set([...known].filter(large).map((symbol) => classes[symbol]!.role));
  const reduces = [...known].some((s) => large(s) && classes[s]!.kind === REDUCES);
  for (const symbol of added) {
    const call = classes[symbol]!;
    if (!large(symbol)) continue;
    if (call.kind === OTHER ? !reduces : !roles.has(call.role)) return true;
  }
  return isReordered(
    inner.filter(large),
    outer.filter((s) => large(s) && known.has(s)),
  );
}

/** Few calls of one size; or of one part of it each, where replicas of a sharded model also reduce what each rank has of it. */
function isLayer(classes: readonly CallClass[], pattern: Int32Array): boolean {
  const calls = [...pattern].map((symbol) => classes[symbol]!);
  if (calls.length > MOST_LAYER_CALLS || calls.some(isSmall)) return false;
  const [{ elements, shard }] = calls as [CallClass];
  return (
    calls.every((call) => call.elements === elements) ||
    (shard > 0 && calls.every((call) => call.shard === shard))
  );
}

/** Whether `outer` has the calls of a whole number of `inner`, but is not just that. */
function isReordered(inner: Int32Array, outer: Int32Array): boolean {
  const times = outer.length / inner.length;
  if (inner.length === 0 || times < 2 || !Number.isInteger(times)) return false;
  const left = new Map<number, number>();
  for (const symbol of inner) left.set(symbol, (left.get(symbol) ?? 0) + times);
  for (const symbol of outer) left.set(symbol, (left.get(symbol) ?? 0) - 1);
  for (const count of left.values()) if (count !== 0) return false;
  return outer.some((symbol, i) => symbol !== outer[(i + inner.length) % outer.length]);
}

/**
 * Calls that are all alike repeat much faster than iterations: equal buckets of gradients, the all-reduces of
 * tensor parallelism alone, a first stage that only sends and receives. What the sequence cannot tell the clock
 * does: where every k-th repetition takes many times as long as the others, that is the iteration.
 */
function mergeByPauses({ timesNs }: CallSequence, endings: readonly Ending[]): Iterations {
  const asTheyAre = { endings, repetitions: 1 };
  const took: number[] = [];
  for (let i = 0; i + 1 < endings.length; i++)
    took.push(timesNs[endings[i + 1]!.call + 1]! - timesNs[endings[i]!.call + 1]!);
  const usual = median(took);
  const pauses = [...took.keys()].filter((i) => took[i]! > LONG * usual);
  if (pauses.length < FEWEST || pauses.length > took.length / 2) return asTheyAre;
  const distances = pauses.slice(1).map((at, k) => at - pauses[k]!);
  const distance = median(distances);
  const regular = distances.filter((each) => each === distance).length;
  if (distance < 2 || regular < REGULAR * distances.length) return asTheyAre;
  return { endings: pauses.map((i) => endings[i]!), repetitions: distance };
}
