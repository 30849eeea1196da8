/** Minder §4.4: who is farthest from all others in each window (step 1), and for how long it stays the same (step 2). */
import { PairwiseDistances } from "../../../maths/pairwise-distances.ts";
import type { Embedder } from "./embedding.ts";

/** The same machine in consecutive windows, by the ticks at which they begin. */
export interface CandidateRun {
  /** Index among the compared machines. */
  readonly machine: number;
  readonly firstTick: number;
  readonly lastTick: number;
  readonly windows: number;
  /** Mean of its normal scores. */
  readonly score: number;
  /** It is the candidate of the last window there is. */
  readonly isOpen: boolean;
}

export interface Search {
  readonly threshold: number;
  /** Samples from window to window. */
  readonly stride: number;
  /** Windows that a run must have. */
  readonly needed: number;
}

export interface Found {
  /** The first run that lasted, followed to its end; null where none did. */
  readonly faulty: CandidateRun | null;
  /** Those that did not last, up to there. */
  readonly short: readonly CandidateRun[];
}

export function findCandidates(
  embedder: Embedder,
  machines: number,
  ticks: number,
  { threshold, stride, needed }: Search,
): Found {
  const short: CandidateRun[] = [];
  if (machines < 2) return { faulty: null, short };
  const pairs = new PairwiseDistances(machines, embedder.dimensions);
  const sums = new Float64Array(machines);
  let run: { machine: number; firstTick: number; windows: number; score: number } | null = null;
  const close = (isOpen: boolean): CandidateRun | null => {
    if (run === null) return null;
    const lastTick = run.firstTick + (run.windows - 1) * stride;
    const closed = { ...run, lastTick, score: run.score / run.windows, isOpen };
    run = null;
    if (closed.windows >= needed) return closed;
    short.push(closed);
    return null;
  };
  for (let tick = 0; tick + embedder.window <= ticks; tick += stride) {
    embedder.embed(tick, pairs.points, pairs.stride, 0);
    pairs.sums(sums);
    const { machine, score } = farthest(sums);
    const candidate = score > threshold ? machine : -1;
    if (run !== null && run.machine !== candidate) {
      const faulty = close(false);
      if (faulty) return { faulty, short };
    }
    if (candidate < 0) continue;
    run ??= { machine, firstTick: tick, windows: 0, score: 0 };
    run.windows++;
    run.score += score;
  }
  return { faulty: close(true), short };
}

/** Points to be filled, and for each of them the sum of its distances to all others. */
export type Distances = Pick<PairwiseDistances, "points" | "stride" | "sums">;

/** The farthest machine of every window, whatever the threshold. */
export interface Trace {
  readonly who: Int32Array;
  readonly scores: Float64Array;
}

export function traceOf(
  embedder: Embedder,
  machines: number,
  ticks: number,
  stride: number,
  pairs: Distances = new PairwiseDistances(machines, embedder.dimensions),
): Trace {
  const isShort = machines < 2 || ticks < embedder.window;
  const windows = isShort ? 0 : Math.floor((ticks - embedder.window) / stride) + 1;
  const trace = { who: new Int32Array(windows), scores: new Float64Array(windows) };
  if (windows === 0) return trace;
  const sums = new Float64Array(machines);
  for (let w = 0; w < windows; w++) {
    embedder.embed(w * stride, pairs.points, pairs.stride, 0);
    pairs.sums(sums);
    const { machine, score } = farthest(sums);
    trace.who[w] = machine;
    trace.scores[w] = score;
  }
  return trace;
}

/** The greatest normal score: (sum - mean) / standard deviation over the machines. 0 where all are equally far. */
export function farthest(sums: Float64Array): { readonly machine: number; readonly score: number } {
  const count = sums.length;
  let mean = 0;
  let machine = 0;
  for (let i = 0; i < count; i++) {
    mean += sums[i]! / count;
    if (sums[i]! > sums[machine]!) machine = i;
  }
  let square = 0;
  for (let i = 0; i < count; i++) square += (sums[i]! - mean) ** 2;
  const deviation = Math.sqrt(square / (count - 1));
  // Sums of float32 distances: differences in the sixth digit are rounding.
  if (!(deviation > 1e-6 * mean)) return { machine, score: 0 };
  return { machine, score: (sums[machine]! - mean) / deviation };
}

/** No machine among N can score more: it alone far away, all others in one place. */
export function highestScore(machines: number): number {
  return (machines - 1) / Math.sqrt(machines);
}
