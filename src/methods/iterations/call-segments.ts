/**
 * The ends of all iterations of a sequence of calls. Where the end that was learnt no longer occurs, the
 * pattern has changed for good (another batch size, another accumulation), and a new one is looked for
 * in that stretch.
 */
import { findPeriod } from "../../maths/period.ts";
import type { Level } from "../../maths/period-runs.ts";
import { chooseAnchor, endsOf, type Anchor } from "./call-anchors.ts";
import type { CallSequence } from "./call-classes.ts";
import { isMoreThanRepetition } from "./call-levels.ts";
import { mergeByPauses } from "./call-pauses.ts";

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
