/** Where a sequence repeats itself exactly. */
import { getOrInsert } from "../base/group-by.ts";

/** A stretch in which symbols[i] equals symbols[i + period] throughout. */
export interface Run {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** A pattern with every stretch that repeats it at least three times. */
export interface Level {
  readonly period: number;
  readonly runs: readonly Run[];
  /** Symbols in the runs. */
  readonly covered: number;
  /** One period, from the start of the longest run; the later one of equally long ones. */
  readonly pattern: Int32Array;
}

/** The period itself and two further ones: with one alone, anything that occurs twice would do. */
const COPIES = 3;

export function runsOf(symbols: Int32Array, period: number): Run[] {
  const runs: Run[] = [];
  const last = symbols.length - period;
  let start = 0;
  for (let i = 0; i <= last; i++) {
    if (i < last && symbols[i] === symbols[i + period]) continue;
    if (i - start >= (COPIES - 1) * period) runs.push({ start, end: i + period });
    start = i + 1;
  }
  return runs;
}

/** The smallest period of a stretch, by the failure function of Knuth, Morris and Pratt. */
export function smallestPeriod(symbols: Int32Array, start: number, length: number): number {
  const border = new Int32Array(length);
  for (let i = 1, k = 0; i < length; i++) {
    while (k > 0 && symbols[start + i] !== symbols[start + k]) k = border[k - 1]!;
    if (symbols[start + i] === symbols[start + k]) k++;
    border[i] = k;
  }
  return length - (border[length - 1] ?? 0);
}

/** The levels that a candidate for a period stands for: its own, or smaller ones that it is a multiple of. */
export function levelsOf(symbols: Int32Array, candidate: number): Level[] {
  const runs = runsOf(symbols, candidate);
  const periods = new Set<number>();
  for (const { start } of runs) periods.add(smallestPeriod(symbols, start, 2 * candidate));
  return [...periods].flatMap((period) => {
    const all = period === candidate ? runs : runsOf(symbols, period);
    return splitByPattern(symbols, period, all);
  });
}

/** Runs of one period may repeat different things: layers here, a broadcast of parameters there. */
function splitByPattern(symbols: Int32Array, period: number, runs: readonly Run[]): Level[] {
  const alike = new Map<number, Run[]>();
  for (const run of runs) {
    if (smallestPeriod(symbols, run.start, 2 * period) !== period) continue;
    const hash = contentHash(symbols, run.start, period);
    getOrInsert(alike, hash, () => []).push(run);
  }
  return [...alike.values()].map((same) => makeLevel(symbols, period, same));
}

/** Equal for all rotations of a pattern. */
function contentHash(symbols: Int32Array, start: number, period: number): number {
  let hash = 0;
  for (let i = start; i < start + period; i++) {
    const h = Math.imul(symbols[i]! ^ 0x9e3779b9, 0x85ebca6b);
    hash = (hash + Math.imul(h ^ (h >>> 15), 0xc2b2ae35)) | 0;
  }
  return hash;
}

function makeLevel(symbols: Int32Array, period: number, runs: readonly Run[]): Level {
  let longest = runs[0]!;
  let covered = 0;
  let reached = 0;
  for (const run of runs) {
    if (run.end - run.start >= longest.end - longest.start) longest = run;
    covered += run.end - Math.max(run.start, reached);
    reached = run.end;
  }
  const pattern = symbols.slice(longest.start, longest.start + period);
  return { period, runs, covered, pattern };
}

/** Symbols of `inner`'s runs that lie in `outer`'s. */
export function coveredWithin(inner: Level, outer: Level): number {
  let sum = 0;
  let i = 0;
  for (const { start, end } of inner.runs) {
    while (i < outer.runs.length && outer.runs[i]!.end <= start) i++;
    for (let j = i; j < outer.runs.length && outer.runs[j]!.start < end; j++) {
      const run = outer.runs[j]!;
      sum += Math.min(end, run.end) - Math.max(start, run.start);
    }
  }
  return sum;
}
