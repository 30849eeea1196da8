/**
 * Scores of change points against one or more annotators, as van den Burg & Williams 2020 define them
 * ("An Evaluation of Change Point Detection Algorithms", TCPDBench's metrics.py): the same numbers, so that
 * published ones can stand beside ours. Index 0 counts as a change point of everybody.
 */
export interface Score {
  readonly f1: number;
  readonly covering: number;
}

/** How far off a location may be and still count, in points (TCPDBench's). */
export const MARGIN = 5;

export function score(
  annotators: readonly (readonly number[])[],
  found: readonly number[],
  length: number,
): Score {
  return { f1: f1Of(annotators, found), covering: coveringOf(annotators, found, length) };
}

function withStart(points: readonly number[]): number[] {
  return [...new Set([0, ...points])].sort((a, b) => a - b);
}

/** How many of `truths` have a point of `found` of their own within the margin, the nearest first come. */
function matched(truths: readonly number[], found: readonly number[]): number {
  const left = new Set(found);
  let count = 0;
  for (const truth of truths) {
    let nearest: number | null = null;
    for (const point of left) {
      const off = Math.abs(point - truth);
      if (off <= MARGIN && (nearest === null || off < Math.abs(nearest - truth))) nearest = point;
    }
    if (nearest === null) continue;
    left.delete(nearest);
    count++;
  }
  return count;
}

/** Precision against all annotators together, recall the mean over them. */
export function f1Of(annotators: readonly (readonly number[])[], found: readonly number[]): number {
  const points = withStart(found);
  const precision = matched(withStart(annotators.flat()), points) / points.length;
  const recall = mean(
    annotators.map((truths) => {
      const all = withStart(truths);
      return matched(all, points) / all.length;
    }),
  );
  return (2 * precision * recall) / (precision + recall);
}

/** Mean over annotators: every true segment's best overlap (Jaccard) with a found one, weighted by length. */
export function coveringOf(
  annotators: readonly (readonly number[])[],
  found: readonly number[],
  length: number,
): number {
  const ours = segments(found, length);
  return mean(
    annotators.map((truths) => {
      let sum = 0;
      for (const segment of segments(truths, length))
        sum +=
          (segment.end - segment.begin) * Math.max(...ours.map((other) => overlap(segment, other)));
      return sum / length;
    }),
  );
}

interface Segment {
  readonly begin: number;
  readonly end: number;
}

function segments(points: readonly number[], length: number): Segment[] {
  const begins = withStart(points);
  return begins.map((begin, i) => ({ begin, end: begins[i + 1] ?? length }));
}

function overlap(a: Segment, b: Segment): number {
  const shared = Math.min(a.end, b.end) - Math.max(a.begin, b.begin);
  if (shared <= 0) return 0;
  return shared / (Math.max(a.end, b.end) - Math.min(a.begin, b.begin));
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
