/** The best question to ask of some rows: which feature, which edge between bins. */
import type { BinnedRows } from "./forest-bins.ts";

export type Criterion = "gini" | "entropy";

export interface Split {
  feature: number;
  /** Rows in bins up to and including this one go left. */
  bin: number;
  /** Impurity taken away, times the number of rows; 0 where there is no split. */
  gain: number;
}

/** Impurity of a node times its number of rows. */
export function impurity(criterion: Criterion, positive: number, total: number): number {
  if (total === 0) return 0;
  const p = positive / total;
  if (criterion === "gini") return total * 2 * p * (1 - p);
  const part = (q: number): number => (q > 0 ? -q * Math.log2(q) : 0);
  return total * (part(p) + part(1 - p));
}

const total = new Int32Array(256);
const positive = new Int32Array(256);

/**
 * Improves `best` where splitting rows[from..to) by this feature takes away more; true where the feature
 * can be split at all. Equal gains: the first feature asked and the lowest edge win.
 */
export function trySplit(
  data: BinnedRows,
  labels: Uint8Array,
  rows: Int32Array,
  from: number,
  to: number,
  feature: number,
  criterion: Criterion,
  minLeaf: number,
  best: Split,
): boolean {
  const edges = data.edges[feature]!.length;
  total.fill(0, 0, edges + 1);
  positive.fill(0, 0, edges + 1);
  const column = feature * data.count;
  let positives = 0;
  for (let i = from; i < to; i++) {
    const row = rows[i]!;
    const bin = data.bins[column + row]!;
    total[bin]!++;
    positive[bin]! += labels[row]!;
    positives += labels[row]!;
  }
  const count = to - from;
  const whole = impurity(criterion, positives, count);
  let left = 0;
  let leftPositive = 0;
  let isPossible = false;
  for (let bin = 0; bin < edges; bin++) {
    if (total[bin] === 0) continue;
    left += total[bin]!;
    leftPositive += positive[bin]!;
    if (left < minLeaf) continue;
    if (count - left < Math.max(1, minLeaf)) break;
    isPossible = true;
    const gain =
      whole -
      impurity(criterion, leftPositive, left) -
      impurity(criterion, positives - leftPositive, count - left);
    if (gain > best.gain + 1e-9) {
      best.feature = feature;
      best.bin = bin;
      best.gain = gain;
    }
  }
  return isPossible;
}
