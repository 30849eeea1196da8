/**
 * Iteration times from what ranks call, without a log (Greyhound §4.2, "Iteration time analysis"): the period
 * of the calls is the iteration, and the time from one end of it to the next its duration.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import { EVALUATION, type IterationSeries } from "../../model/series.ts";
import { callSequence, P2P, type CallSequence } from "./call-classes.ts";
import { findEndings, type Ending, type Endings } from "./call-segments.ts";

/** Finding periods takes up to 0.1 s a rank; sixteen tell as much as sixteen thousand. */
const MOST = 16;

/** Groups with fewer calls an iteration may be off by the calls of the initialisation. */
const LEAST_CALLS = 4;

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

/** Which number a training log gives to the iteration that a call ends; its first is 1. */
function iterationAt(ops: OperatorTable, calls: CallSequence, { call, segment }: Ending): number {
  const { symbols } = calls;
  const { marker, markersPerIteration } = segment.anchor;
  if (isWhole(ops)) {
    let markers = 0;
    for (let i = 0; i <= call; i++) if (symbols[i] === marker) markers++;
    return Math.max(1, Math.round(markers / markersPerIteration));
  }
  return Math.max(1, fromSequenceNumbers(ops, calls, call, segment));
}

/** Whether the record begins where the job began, rather than where a ring was overwritten. */
function isWhole(ops: OperatorTable): boolean {
  const first = ops.recordId[0];
  if (first !== undefined && !Number.isNaN(first) && first > 0) return false;
  if (first === 0) return true;
  // Transfers have no number of their group's.
  const collective = ops.isP2p.indexOf(0);
  return (collective < 0 ? ops.p2pSeq[0]! : ops.seq[collective]!) <= 1;
}

/**
 * Sequence numbers count a group's calls since the job began, so at the end of iteration n they are n times
 * the calls of one, and a few from the initialisation. The marker's group first, because an evaluation
 * calls nothing in it; then the one with most calls, in which a few do not matter.
 */
function fromSequenceNumbers(
  ops: OperatorTable,
  calls: CallSequence,
  end: number,
  { pattern, anchor }: Ending["segment"],
): number {
  const perGroup = new Map<number, number>();
  const p2pOnly = pattern.every((symbol) => isP2p(calls, symbol));
  for (const symbol of pattern) {
    if (isP2p(calls, symbol) !== p2pOnly) continue;
    const { group } = calls.classes[symbol]!;
    perGroup.set(group, (perGroup.get(group) ?? 0) + 1);
  }
  let group = calls.classes[anchor.marker]!.group;
  if ((perGroup.get(group) ?? 0) < LEAST_CALLS) {
    for (const [other, count] of perGroup) if (count > (perGroup.get(group) ?? 0)) group = other;
  }
  const each = perGroup.get(group)!;
  for (let i = end; i >= 0; i--) {
    const op = calls.ops[i]!;
    if (ops.group[op] !== group || (ops.isP2p[op] === 1) !== p2pOnly) continue;
    return Math.floor((p2pOnly ? ops.p2pSeq[op]! : ops.seq[op]!) / each);
  }
  return 1;
}

function isP2p(calls: CallSequence, symbol: number): boolean {
  return calls.classes[symbol]!.kind === P2P;
}

/**
 * Which ranks stand for the others.
 * At most sixteen sources, spread over the programs that ranks run (pipeline stages differ, ranks of one stage
 * do not), the lowest ranks of each first.
 */
function representatives<T extends { readonly rank: Rank | null; readonly ops: OperatorTable }>(
  sources: readonly T[],
): T[] {
  if (sources.length <= MOST) return [...sources];
  const programs = new Map<number, T[]>();
  const order = [...sources].sort((a, b) => (a.rank ?? 2 ** 32) - (b.rank ?? 2 ** 32));
  for (const source of order) {
    const hash = programHash(source.ops);
    getOrInsert(programs, hash, () => []).push(source);
  }
  const chosen: T[] = [];
  for (let turn = 0; chosen.length < MOST; turn++) {
    for (const same of programs.values()) {
      const source = same[turn];
      if (source && chosen.length < MOST) chosen.push(source);
    }
  }
  const taken = new Set(chosen);
  return sources.filter((source) => taken.has(source));
}

/** The kinds of calls without their order, which differs with where a ring begins. */
function programHash(ops: OperatorTable): number {
  const names = ops.names.map(textHash);
  const seen = new Set<number>();
  let hash = 0;
  for (let i = 0; i < ops.count; i++) {
    let call = mix(names[ops.name[i]!]!, ops.group[i]!);
    call = mix(call, ops.inputNumel[i]! | 0);
    call = mix(call, ops.outputNumel[i]! | 0);
    if (seen.has(call)) continue;
    seen.add(call);
    hash ^= mix(call, 1);
  }
  return hash;
}

function textHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = mix(hash, text.charCodeAt(i));
  return hash;
}

function mix(hash: number, value: number): number {
  const h = Math.imul(hash ^ value, 0x9e3779b1);
  return h ^ (h >>> 15);
}
