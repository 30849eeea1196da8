/**
 * What Holmes' detector knows of an operator of one rank in one iteration (§4.2.2, "Detection features"): how
 * long it took, how long the same place in the iteration took over a window of iterations, what the iteration
 * as a whole did, and what it is. A row of numbers an operator, all rows in one array.
 */
import { quantilePlace, select } from "../../../src/maths/quickselect.ts";

/** Communication patterns, in the order of their one-hot columns; anything else is none of them. */
export const PATTERNS = [
  "all_reduce",
  "all_gather",
  "reduce_scatter",
  "all_to_all",
  "send",
  "recv",
] as const;

/** The paper's features, then ours. */
export const FEATURES = [
  "duration",
  "mean",
  "std",
  "z",
  "q1",
  "q2",
  "q3",
  "iqr",
  "iteration",
  "iteration mean",
  "iteration z",
  "share",
  "ranks",
  "bytes",
  ...PATTERNS,
  // Without a unit, so that a forest learnt on some jobs serves others; the paper trains one for each job
  // (§5.1) and can do without. A tree needs many splits for a quotient.
  "over q2",
  "excess share",
  "excess share q1",
  "iteration ratio",
] as const;

export const FEATURE_COUNT = FEATURES.length;
/** The paper's own come first: this many. */
export const PAPER_FEATURE_COUNT = 14 + PATTERNS.length;
/** Features in milliseconds: those that drift when the job as a whole becomes slower (§4.2.2). */
export const SCALE_FEATURES: readonly number[] = [0, 1, 2, 4, 5, 6, 7, 8, 9];
export const DURATION = 0;
export const Z = 3;
export const ITERATION = 8;
export const SHARE = 11;

/** One rank's operators over a window of iterations that all run the same sequence. */
export interface OperatorWindow {
  readonly places: number;
  /** Row-major, iterations × places; NaN where the log lacks the operator. */
  readonly durationMs: Float64Array;
  /** By iteration. */
  readonly iterationMs: Float64Array;
}

/** By place in the iteration: what does not change from iteration to iteration. */
export interface PlaceFeatures {
  /** Members of the group. */
  readonly ranks: Float64Array;
  readonly bytes: Float64Array;
  /** Index into PATTERNS; any other number for none of them. */
  readonly pattern: Uint8Array;
}

/** Columns copied out of the matrix together: a cache line holds eight durations of one iteration. */
const BLOCK = 16;

/**
 * Rows of the given places (all by default) in iteration `at` of the window, row-major. An operator that the
 * log lacks in this iteration gets a row of zeros.
 */
export function featureRows(
  window: OperatorWindow,
  fixed: PlaceFeatures,
  at: number,
  places: Int32Array = Int32Array.from({ length: window.places }, (_, place) => place),
): Float64Array {
  const { durationMs, iterationMs } = window;
  const iterations = iterationMs.length;
  const rows = new Float64Array(places.length * FEATURE_COUNT);
  const block = new Float64Array(BLOCK * iterations);
  const counts = new Int32Array(BLOCK);
  const times = summary(iterationMs.slice(), 0, iterationMs.length);
  const now = iterationMs[at]!;
  for (let first = 0; first < places.length; first += BLOCK) {
    const width = Math.min(BLOCK, places.length - first);
    counts.fill(0);
    for (let i = 0; i < iterations; i++) {
      for (let k = 0; k < width; k++) {
        const ms = durationMs[i * window.places + places[first + k]!]!;
        if (!Number.isNaN(ms)) block[k * iterations + counts[k]!++] = ms;
      }
    }
    for (let k = 0; k < width; k++) {
      const place = places[first + k]!;
      const ms = durationMs[at * window.places + place]!;
      if (Number.isNaN(ms)) continue;
      const own = summary(block, k * iterations, k * iterations + counts[k]!);
      const row = (first + k) * FEATURE_COUNT;
      rows[row] = ms;
      rows[row + 1] = own.mean;
      rows[row + 2] = own.std;
      rows[row + 3] = own.std > 0 ? (ms - own.mean) / own.std : 0;
      rows[row + 4] = own.q1;
      rows[row + 5] = own.q2;
      rows[row + 6] = own.q3;
      rows[row + 7] = own.q3 - own.q1;
      rows[row + 8] = now;
      rows[row + 9] = times.mean;
      rows[row + 10] = times.std > 0 ? (now - times.mean) / times.std : 0;
      rows[row + 11] = now > 0 ? ms / now : 0;
      rows[row + 12] = fixed.ranks[place]!;
      rows[row + 13] = fixed.bytes[place]!;
      const pattern = fixed.pattern[place]!;
      if (pattern < PATTERNS.length) rows[row + 14 + pattern] = 1;
      const ours = row + PAPER_FEATURE_COUNT;
      rows[ours] = own.q2 > 0 ? ms / own.q2 : 1;
      rows[ours + 1] = now > 0 ? (ms - own.q2) / now : 0;
      rows[ours + 2] = now > 0 ? (ms - own.q1) / now : 0;
      rows[ours + 3] = times.q2 > 0 ? now / times.q2 : 1;
    }
  }
  return rows;
}

interface Summary {
  readonly mean: number;
  readonly std: number;
  readonly q1: number;
  readonly q2: number;
  readonly q3: number;
}

/** Of values[from..to), which it moves about. */
function summary(values: Float64Array, from: number, to: number): Summary {
  const count = to - from;
  if (count === 0) return { mean: 0, std: 0, q1: 0, q2: 0, q3: 0 };
  let mean = 0;
  for (let i = from; i < to; i++) mean += values[i]!;
  mean /= count;
  let squares = 0;
  for (let i = from; i < to; i++) squares += (values[i]! - mean) ** 2;
  const middle = from + quantilePlace(count, 0.5);
  const q2 = select(values, from, to, middle);
  // What is below the median stands in front of it: the outer quartiles need half the work.
  const q1 = select(values, from, middle + 1, from + quantilePlace(count, 0.25));
  const q3 = select(values, middle, to, from + quantilePlace(count, 0.75));
  return { mean, std: Math.sqrt(squares / count), q1, q2, q3 };
}

/** Rows with only their first columns: what the paper's own features are worth. */
export function firstColumns(rows: Float64Array, features: number, kept: number): Float64Array {
  const result = new Float64Array((rows.length / features) * kept);
  for (let i = 0; i < result.length; i++)
    result[i] = rows[Math.floor(i / kept) * features + (i % kept)]!;
  return result;
}
