/** The k-th smallest without sorting: quartiles of thousands of windows cost a few passes each. */

/** Value at place `k` of values[from..to) if they were sorted; moves them about so that it stands at k. */
export function select(values: Float64Array, from: number, to: number, k: number): number {
  let low = from;
  let high = to - 1;
  while (low < high) {
    const pivot = values[(low + high) >> 1]!;
    let i = low;
    let j = high;
    while (i <= j) {
      while (values[i]! < pivot) i++;
      while (values[j]! > pivot) j--;
      if (i > j) break;
      const held = values[i]!;
      values[i++] = values[j]!;
      values[j--] = held;
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else break;
  }
  return values[k]!;
}

/** Place of a quantile among `count` sorted values: the nearest one, no interpolation. */
export function quantilePlace(count: number, quantile: number): number {
  return Math.floor(quantile * (count - 1) + 0.5);
}
