/**
 * Indices of a column in ascending order of its values; equal ones keep their order. The records of a ring are nearly
 * sorted (a stream at a time they are), so runs are merged: a sort that compares by a callback costs ten times as much.
 */
export function ascendingOrder(values: ArrayLike<number>): Int32Array<ArrayBuffer> {
  const n = values.length;
  let order = new Int32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  let ends: number[] = [];
  for (let i = 1; i < n; i++) if (!(values[i - 1]! <= values[i]!)) ends.push(i);
  ends.push(n);
  let spare = new Int32Array(n);
  while (ends.length > 1) {
    const merged: number[] = [];
    let from = 0;
    for (let r = 0; r < ends.length; r += 2) {
      const middle = ends[r]!;
      const to = ends[r + 1] ?? middle;
      merge(values, order, spare, from, middle, to);
      merged.push(to);
      from = to;
    }
    [order, spare] = [spare, order];
    ends = merged;
  }
  return order;
}

function merge(
  values: ArrayLike<number>,
  order: Int32Array,
  into: Int32Array,
  from: number,
  middle: number,
  to: number,
): void {
  let left = from;
  let right = middle;
  for (let at = from; at < to; at++) {
    const takesLeft =
      right >= to || (left < middle && values[order[left]!]! <= values[order[right]!]!);
    into[at] = order[takesLeft ? left++ : right++]!;
  }
}
