/**
 * Iterations of a training job repeat each other (L4 §4.2): an event that was never there before, one that is missing now,
 * an iteration that takes longer. Where L4 needs ten iterations before and a spread over many (eval/logs/l4/temporal.ts), this
 * needs two: what is new is new.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { median, spread } from "../../maths/robust.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogTemplates } from "./spatial-matrix.ts";
import { progressOf } from "./temporal-progress.ts";

/** new: never before. missing: always before. slow: took far longer. burst: far more often than before. */
type Change = "new" | "missing" | "slow" | "burst";

interface OddIteration {
  /** As the log numbers it. */
  readonly iteration: number;
  /** By order of reports, from 0. */
  readonly place: number;
  readonly stream: number;
  readonly line: number;
  /** 0 to 1. */
  readonly score: number;
  readonly why: readonly Change[];
  /** Templates that are new or missing there. */
  readonly events: readonly number[];
  /** How many times the usual it took; NaN where no times are known. */
  readonly times: number;
}

interface OddEvent {
  readonly template: number;
  readonly score: number;
  readonly kind: Change;
  /** Reports before its first line; a guess by its place in its stream where nothing tells. */
  readonly place: number;
  readonly isPlaced: boolean;
}

export interface TemporalResult {
  /** The oddest first. */
  readonly iterations: readonly OddIteration[];
  readonly events: readonly OddEvent[];
}

/** Something that is there in so many iterations in a row, or so large a share, belongs to one. */
const HABIT = 0.9;
const LEAST_HABIT = 3;
/** An event that begins in the last few iterations and goes on to the end. */
const LAST = 2;
const SLOW = 1.5;
const LEAST_PRUNED = 20;
const PRUNE_EVERY = 8;
const LEAST_MEDIAN_MS = 1000;
const SLOW_DEVIATIONS = 6;
const MOST_ITERATIONS = 50;

export function compareIterations(digest: LogDigest, templates: LogTemplates): TemporalResult {
  const progress = progressOf(digest);
  const events = lateEvents(digest, templates, progress.count);
  const { reporter } = progress;
  if (!reporter) return { iterations: [], events };
  const { iteration, line, timeMs, sequence, stream } = reporter;
  const present = sequence.length === 0 ? [] : presence(digest, templates, reporter.sequence);
  const firstAt = new Map<number, number>();
  const habit = new Map<number, number>();
  const usual = durationsOf(timeMs);
  // What other files have: ranks that report nothing fail in iterations, too.
  const elsewhere = new Map<number, number[]>();
  for (const { template, place, isPlaced } of events) {
    const at = Math.max(0, place - 1);
    if (!isPlaced) continue;
    getOrInsert(elsewhere, at, () => []).push(template);
  }
  const odd: OddIteration[] = [];
  for (let place = 0; place < iteration.length; place++) {
    const set = present[place]!;
    const all = new Set([...set, ...(elsewhere.get(place) ?? [])]);
    const fresh = [...all].filter((template) => !firstAt.has(template));
    for (const template of fresh) firstAt.set(template, place);
    // The last one is cut off by the failure: what it lacks is what was not reached.
    const missing = place + 1 < iteration.length ? missingFrom(set, habit, place) : [];
    for (const template of set) habit.set(template, (habit.get(template) ?? 0) + 1);
    // What half of them lack will not become a habit: thousands of events must not be asked of thousands of iterations.
    if (place > LEAST_PRUNED && place % PRUNE_EVERY === 0)
      for (const [template, count] of habit) if (count < place / 2) habit.delete(template);
    if (place < 2) continue;
    // Stamps of whole seconds tell nothing of shorter iterations.
    const times = usual.median >= LEAST_MEDIAN_MS ? usual.durations[place]! / usual.median : NaN;
    const isSlow =
      times > SLOW &&
      usual.durations[place]! - usual.median > SLOW_DEVIATIONS * Math.max(usual.spread, 1);
    const why: Change[] = [];
    if (fresh.length > 0) why.push("new");
    if (missing.length > 0) why.push("missing");
    if (isSlow) why.push("slow");
    if (why.length === 0) continue;
    const score =
      1 -
      (1 - Math.min(0.7, 0.3 + 0.1 * fresh.length) * Number(fresh.length > 0)) *
        (1 - 0.4 * Number(missing.length > 0)) *
        (isSlow ? 1 - Math.min(0.7, 0.2 * times) : 1);
    odd.push({
      iteration: iteration[place]!,
      place,
      stream,
      line: line[place]!,
      // The later, the nearer to the failure.
      score: score * (0.5 + (0.5 * (place + 1)) / iteration.length),
      why,
      events: [...fresh, ...missing],
      times,
    });
  }
  odd.sort((a, b) => b.score - a.score || b.place - a.place);
  return { iterations: odd.slice(0, MOST_ITERATIONS), events };
}

/** By iteration: the templates of its sequence. */
function presence(
  { sequences }: LogDigest,
  templates: LogTemplates,
  sequence: Int32Array,
): ReadonlySet<number>[] {
  const sets = sequences.map((shapes) => new Set(Array.from(shapes, (s) => templates.of[s]!)));
  const none = new Set<number>();
  return Array.from(sequence, (s) => sets[s] ?? none);
}

function missingFrom(
  set: ReadonlySet<number>,
  habit: ReadonlyMap<number, number>,
  place: number,
): number[] {
  if (place < LEAST_HABIT) return [];
  return [...habit].flatMap(([template, n]) =>
    n >= HABIT * place && !set.has(template) ? [template] : [],
  );
}

function durationsOf(timeMs: Float64Array): {
  readonly durations: Float64Array;
  readonly median: number;
  readonly spread: number;
} {
  const durations = Float64Array.from(timeMs, (time, i) => (timeMs[i + 1] ?? NaN) - time);
  const known = durations.filter((duration) => duration >= 0);
  const middle = known.length < LEAST_HABIT ? NaN : median(known);
  return { durations, median: middle, spread: spread(known, middle) };
}

/** Without iterations, or where nothing tells which one it was: what stands in the second half of its stream. */
const LATE_SHARE = 0.5;

/** Events that no stream had until shortly before the end. */
function lateEvents(digest: LogDigest, templates: LogTemplates, count: number): OddEvent[] {
  const { cells, streams } = digest;
  const progress = progressOf(digest);
  const size = templates.texts.length;
  /** Reports before the first line of it that can be placed; share of its stream before the first that cannot. */
  const first = new Float64Array(size).fill(Infinity);
  const share = new Float64Array(size).fill(Infinity);
  const ends = new Float64Array(streams.length);
  for (let c = 0; c < cells.count; c++)
    ends[cells.stream[c]!] = Math.max(ends[cells.stream[c]!]!, cells.lastLine[c]!);
  for (let c = 0; c < cells.count; c++) {
    const stream = cells.stream[c]!;
    const t = templates.of[cells.shape[c]!]!;
    const line = cells.firstLine[c]!;
    const before = count === 0 ? NaN : progress.before(stream, line, cells.firstMs[c]!);
    if (before < first[t]!) first[t] = before;
    else if (Number.isNaN(before)) share[t] = Math.min(share[t]!, line / ends[stream]!);
  }
  const events: OddEvent[] = [];
  for (let t = 0; t < size; t++) {
    const isPlaced = first[t]! < Infinity;
    const place = isPlaced ? first[t]! : share[t]! * Math.max(1, count);
    const isNew = isPlaced ? first[t]! >= count - LAST && count > LAST : share[t]! >= LATE_SHARE;
    if (!isNew || place === Infinity) continue;
    const score = isPlaced ? 0.5 + 0.5 * (first[t]! / count) : 0.3 + 0.4 * (share[t]! - 0.5) * 2;
    events.push({ template: t, score, kind: "new", place, isPlaced });
  }
  return events.sort((a, b) => b.score - a.score || a.place - b.place);
}
