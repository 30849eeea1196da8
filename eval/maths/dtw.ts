/** Dynamic time warping over sequences of symbols (L4 §5.3.2): 0 for equal ones, 1 for others. */

/**
 * Least cost of an alignment in which every symbol of either meets at least one of the other, by the length of the longer:
 * 0 where they are equal but for repetitions, 1 where they have nothing in common. Costs the product of the lengths.
 */
export function dtwDistance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const n = a.length;
  const m = b.length;
  if (n === 0 || m === 0) return n === m ? 0 : 1;
  let above = new Float64Array(m + 1).fill(Infinity);
  let row = new Float64Array(m + 1);
  above[0] = 0;
  for (let i = 1; i <= n; i++) {
    row[0] = Infinity;
    const symbol = a[i - 1];
    for (let j = 1; j <= m; j++) {
      const before = Math.min(above[j]!, above[j - 1]!, row[j - 1]!);
      row[j] = before + (symbol === b[j - 1] ? 0 : 1);
    }
    const held = above;
    above = row;
    row = held;
  }
  return above[m]! / Math.max(n, m);
}
