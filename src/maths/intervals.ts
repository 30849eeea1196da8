/** Sets of times as sorted, disjoint intervals: unions, lengths, overlaps. */

export interface Intervals {
  readonly start: Float64Array;
  readonly end: Float64Array;
}

export const NO_INTERVALS: Intervals = { start: new Float64Array(0), end: new Float64Array(0) };

/** The union of intervals that are ascending by start; `passes` says which rows of the columns count. */
export function unionOf(
  startNs: Float64Array,
  durNs: Float64Array,
  count: number,
  passes: (row: number) => boolean,
): Intervals {
  const start: number[] = [];
  const end: number[] = [];
  for (let i = 0; i < count; i++) {
    if (!passes(i)) continue;
    const from = startNs[i]!;
    const to = from + durNs[i]!;
    const last = end.length - 1;
    if (last >= 0 && from <= end[last]!) {
      if (to > end[last]!) end[last] = to;
    } else {
      start.push(from);
      end.push(to);
    }
  }
  return { start: Float64Array.from(start), end: Float64Array.from(end) };
}

/** Length of what lies in the set between two times. */
export function overlapWith({ start, end }: Intervals, from: number, to: number): number {
  let sum = 0;
  for (let i = firstEndingAfter(end, from); i < start.length && start[i]! < to; i++)
    sum += Math.max(0, Math.min(end[i]!, to) - Math.max(start[i]!, from));
  return sum;
}

/** Index of the first interval that ends after a time; the length where none does. */
export function firstEndingAfter(end: Float64Array, time: number): number {
  let low = 0;
  let high = end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
