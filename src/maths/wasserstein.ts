/**
 * Distance between two empirical distributions: how far the mass of one has to be moved, on average, to become the
 * other (1-Wasserstein, the area between both cumulative distributions). In the unit of the values.
 */

/** Both ascending; sizes may differ. NaN where one is empty. */
export function wasserstein(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return area(a, b, Math.abs);
}

/**
 * How much of the distance is mass that lies lower in `a` than in `b`: moves downwards only. Equal to the distance
 * where `a` is smaller throughout, 0 where it is larger throughout.
 */
export function movedDown(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return area(a, b, (difference) => Math.max(0, -difference));
}

/**
 * Walks the quantile functions of both at once: between two neighbouring steps of either, both are constant, and
 * exact for unequal sizes because the walk stops at the steps of both. Counts are integers: place i of n ends at
 * i·m of n·m, so that no rounding decides which step comes first.
 */
function area(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  cost: (difference: number) => number,
): number {
  const n = a.length;
  const m = b.length;
  if (n === 0 || m === 0) return NaN;
  let sum = 0;
  let at = 0;
  for (let i = 0, j = 0; i < n && j < m;) {
    const endA = (i + 1) * m;
    const endB = (j + 1) * n;
    const end = Math.min(endA, endB);
    sum += (end - at) * cost(a[i]! - b[j]!);
    at = end;
    if (endA === end) i++;
    if (endB === end) j++;
  }
  return sum / (n * m);
}

/** At most `most` values that stand for all: the middle of each of `most` equal shares. Ascending in, ascending out. */
export function thinned(sorted: Float64Array, most: number): Float64Array {
  if (sorted.length <= most) return sorted;
  return Float64Array.from(
    { length: most },
    (_, i) => sorted[Math.floor(((i + 0.5) * sorted.length) / most)]!,
  );
}
