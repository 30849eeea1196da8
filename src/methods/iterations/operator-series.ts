/**
 * Iteration times from what ranks call, without a log (Greyhound §4.2, "Iteration time analysis"): the period
 * of the calls is the iteration, and the time from one end of it to the next its duration.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import { EVALUATION, type IterationSeries } from "../../model/series.ts";
import { callSequence, type CallSequence } from "./call-classes.ts";
import { iterationAt } from "./call-numbers.ts";
import { representatives } from "./call-ranks.ts";
import { findEndings, type Ending, type Endings } from "./call-segments.ts";

export interface OperatorSeries {
  readonly series: IterationSeries;
  /** Calls of an iteration, then of what repeats inside it, then of what it repeats in. */
  readonly periods: readonly number[];
}

export interface CallSource {
  readonly file: string;
  readonly rank: Rank | null;
  readonly ops: OperatorTable;
  readonly epochNs: bigint;
}

/** Calls of an iteration beyond which something else went on in it: a fifth more. */
const EXTRA_CALLS = 1.2;

/** Of a large job only some ranks are read: ranks of a synchronous job show the same iteration times. */
export function operatorSeries(job: Job): OperatorSeries[] {
  const sources: CallSource[] = [...job.dumps.values()].map(({ rank, dump }) => {
    const { file, ops, epochNs } = dump;
    return { file, rank, ops, epochNs };
  });
  for (const { file, rank, ops, epochNs } of job.operators) {
    sources.push({ file, rank, ops, epochNs });
  }
  return representatives(sources).flatMap((source) => seriesOf(source) ?? []);
}

/** null where its calls do not repeat. */
export function seriesOf(source: CallSource): OperatorSeries | null {
  // Batches of varying length give every call another size; without sizes they still repeat.
  for (const withSizes of [true, false]) {
    const calls = callSequence(source.ops, withSizes);
    const found = findEndings(calls);
    if (found && found.endings.length >= 2) return measure(source, calls, found);
  }
  return null;
}

function measure(source: CallSource, calls: CallSequence, found: Endings): OperatorSeries {
  const { endings, segments, repetitions } = found;
  const count = endings.length - 1;
  const iteration = new Float64Array(count);
  const durationMs = new Float64Array(count);
  const endMs = new Float64Array(count);
  const between = new Uint8Array(count);
  const epochMs = Number(source.epochNs / 1_000_000n);
  const restMs = Number(source.epochNs % 1_000_000n) / 1e6;
  const numbered = numberedEndings(source.ops, calls, found);
  for (let i = 0; i < count; i++) {
    const from = numbered[i]!;
    const to = numbered[i + 1]!;
    const iterations = to.number - from.number;
    const end = calls.timesNs[to.call + 1]!;
    iteration[i] = to.number;
    durationMs[i] = (end - calls.timesNs[from.call + 1]!) / 1e6 / iterations;
    endMs[i] = epochMs + (restMs + end / 1e6);
    const length = to.call - from.call;
    // Equal lengths in a row are another accumulation, not an evaluation.
    const isSteady =
      length === from.call - (endings[i - 1]?.call ?? NaN) ||
      length === (endings[i + 2]?.call ?? NaN) - to.call;
    if (!isSteady && length > EXTRA_CALLS * to.segment.period * repetitions * iterations)
      between[i] = EVALUATION;
  }
  const name = source.file.slice(source.file.lastIndexOf("/") + 1);
  return {
    series: {
      source: source.rank === null ? name : `${name}, rank ${source.rank}`,
      file: source.file,
      rank: source.rank,
      basis: "operators",
      iteration,
      durationMs,
      endMs,
      line: new Int32Array(count),
      batch: new Float64Array(count).fill(NaN),
      between,
    },
    periods:
      repetitions > 1
        ? [repetitions * segments[0]!.period, ...segments[0]!.periods]
        : segments[0]!.periods,
  };
}

/** The ends of iterations with the numbers that a log gives them. */
export function numberedEndings(
  ops: OperatorTable,
  calls: CallSequence,
  { endings, repetitions }: Endings,
): (Ending & { readonly number: number })[] {
  let repeated = iterationAt(ops, calls, endings[0]!);
  return endings.map((ending, i) => {
    if (i > 0) repeated += iterationsIn(calls, endings[i - 1]!.call + 1, ending);
    return { ...ending, number: Math.max(1, Math.round(repeated / repetitions)) };
  });
}

/** More than one where the end of an iteration was lost to a call in the middle of it. */
function iterationsIn({ symbols }: CallSequence, from: number, { call, segment }: Ending): number {
  const { marker, markersPerIteration } = segment.anchor;
  let markers = 0;
  for (let i = from; i <= call; i++) if (symbols[i] === marker) markers++;
  return Math.max(1, Math.round(markers / markersPerIteration));
}
