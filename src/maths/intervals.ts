/** Sets of times as sorted, disjoint intervals: unions, lengths, overlaps. */

export interface Intervals {
  readonly start: Float64Array;
  readonly end: Float64Array;
}

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

/** What lies in the one set and not in the other. */
export function without(set: Intervals, taken: Intervals): Intervals {
  const start: number[] = [];
  const end: number[] = [];
  let next = 0;
  for (let i = 0; i < set.start.length; i++) {
    let from = set.start[i]!;
    const to = set.end[i]!;
    while (next < taken.start.length && taken.end[next]! <= from) next++;
    // What reaches beyond this interval may cover part of the next one, so `next` stays behind.
    for (let k = next; from < to; k++) {
      const hole = k < taken.start.length ? Math.max(from, taken.start[k]!) : to;
      if (Math.min(hole, to) > from) {
        start.push(from);
        end.push(Math.min(hole, to));
      }
      if (hole >= to) break;
      from = Math.max(from, taken.end[k]!);
    }
  }
  return { start: Float64Array.from(start), end: Float64Array.from(end) };
}

/** Shares, 0..1, that the set covers of so many equal parts of a stretch. */
export function coverage(
  { start, end }: Intervals,
  from: number,
  to: number,
  parts: number,
): Float32Array {
  const length = (to - from) / parts;
  const covered = new Float64Array(parts);
  for (let i = firstEndingAfter(end, from); i < start.length && start[i]! < to; i++) {
    const first = Math.max(start[i]!, from) - from;
    const last = Math.min(end[i]!, to) - from;
    const lastPart = Math.min(parts - 1, Math.floor(last / length));
    for (let part = Math.min(parts - 1, Math.floor(first / length)); part <= lastPart; part++)
      covered[part]! += Math.max(
        0,
        Math.min(last, (part + 1) * length) - Math.max(first, part * length),
      );
  }
  return Float32Array.from(covered, (ns) => Math.min(1, ns / length));
}
