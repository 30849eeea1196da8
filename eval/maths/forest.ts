/**
 * A random forest for two classes, flat: one typed array a field, one index a node, all trees behind each
 * other. Trees of some thousand nodes as objects would be chased through the heap by every prediction; as
 * columns a tree lies in the first cache, and threads share it. Growing is in forest-grow.ts.
 */
import type { Forest } from "./forest-grow.ts";

/** Mean over the trees of the leaves' probabilities, for the row that begins at `from`. */
export function predictRow(forest: Forest, row: Float64Array, from = 0): number {
  const { roots, feature, threshold, left, right, probability } = forest;
  let sum = 0;
  for (let tree = 0; tree < roots.length; tree++) {
    let node = roots[tree]!;
    let asked = feature[node]!;
    while (asked >= 0) {
      node = row[from + asked]! <= threshold[node]! ? left[node]! : right[node]!;
      asked = feature[node]!;
    }
    sum += probability[node]!;
  }
  return sum / roots.length;
}

/** Rows row-major. Tree by tree, so that each is in the cache while all rows pass it. */
export function predictRows(forest: Forest, rows: Float64Array): Float64Array {
  const { features, roots, feature, threshold, left, right, probability } = forest;
  const result = new Float64Array(rows.length / features);
  for (let tree = 0; tree < roots.length; tree++) {
    const root = roots[tree]!;
    for (let row = 0, from = 0; row < result.length; row++, from += features) {
      let node = root;
      let asked = feature[node]!;
      while (asked >= 0) {
        node = rows[from + asked]! <= threshold[node]! ? left[node]! : right[node]!;
        asked = feature[node]!;
      }
      result[row]! += probability[node]!;
    }
  }
  for (let row = 0; row < result.length; row++) result[row]! /= roots.length;
  return result;
}

/** By feature: its share of all the impurity that splits took away; adds up to 1, or is all 0. */
export function importances({ gain }: Forest): Float64Array {
  const sum = gain.reduce((total, value) => total + value, 0);
  return sum > 0 ? gain.map((value) => value / sum) : gain.slice();
}
