/**
 * Grows a random forest (Breiman 2001): each tree sees as many rows as there are, drawn with replacement, and each
 * split a random few of the features (the root of their number). Same rows and seed, same forest.
 */
import { assert } from "../../src/base/errors.ts";
import { randomInt, seeded, type Random } from "../../src/base/random.ts";
import { binRows, type BinnedRows } from "./forest-bins.ts";
import { trySplit, type Criterion, type Split } from "./forest-split.ts";

/** Flat: one typed array a field, one index a node, all trees behind each other. */
export interface Forest {
  /** Columns of a row. */
  readonly features: number;
  /** First node of each tree. */
  readonly roots: Int32Array;
  /** Feature that the node asks for; -1 in a leaf. */
  readonly feature: Int32Array;
  /** A row whose value is at most this goes left, any other (NaN too) right. A float32's value. */
  readonly threshold: Float64Array;
  /** Children; a node's left child is the next node. A leaf is its own child. */
  readonly left: Int32Array;
  readonly right: Int32Array;
  /** Share of the positive class among the training rows of a leaf, in [0, 1]. A float32's value. */
  readonly probability: Float64Array;
  /** By feature: impurity that its splits took away, in training rows. */
  readonly gain: Float64Array;
}

export interface ForestOptions {
  readonly trees: number;
  readonly maxDepth: number;
  /** Least number of drawn rows in a leaf. */
  readonly minLeaf: number;
  readonly criterion: Criterion;
  readonly seed: number;
  /** Features a split may choose from; the root of their number by default. */
  readonly tried?: number;
  /** False: every tree sees every row once. */
  readonly bootstrap?: boolean;
}

/** Rows row-major, labels 0 or 1. */
export function growForest(
  rows: Float64Array,
  labels: Uint8Array,
  features: number,
  options: ForestOptions,
): Forest {
  assert(labels.length > 0 && rows.length === labels.length * features, "a label for every row");
  const data = binRows(rows, features);
  const nodes = new Nodes(features);
  const roots: number[] = [];
  const random = seeded(options.seed);
  const drawn = new Int32Array(labels.length);
  for (let tree = 0; tree < options.trees; tree++) {
    for (let i = 0; i < drawn.length; i++)
      drawn[i] = options.bootstrap === false ? i : randomInt(random, drawn.length);
    roots.push(growTree(data, labels, drawn, nodes, random, options));
  }
  return nodes.finish(roots);
}

/** Nodes of all trees while their number is not known. */
class Nodes {
  readonly feature: number[] = [];
  readonly threshold: number[] = [];
  readonly right: number[] = [];
  readonly probability: number[] = [];
  readonly gain: Float64Array;

  constructor(features: number) {
    this.gain = new Float64Array(features);
  }

  leaf(probability: number): number {
    this.feature.push(-1);
    this.threshold.push(0);
    this.probability.push(Math.fround(probability));
    return this.right.push(this.right.length) - 1;
  }

  finish(roots: readonly number[]): Forest {
    const feature = Int32Array.from(this.feature);
    return {
      features: this.gain.length,
      roots: Int32Array.from(roots),
      feature,
      threshold: Float64Array.from(this.threshold),
      left: feature.map((asked, node) => (asked < 0 ? node : node + 1)),
      right: Int32Array.from(this.right),
      probability: Float64Array.from(this.probability),
      gain: this.gain,
    };
  }
}

function growTree(
  data: BinnedRows,
  labels: Uint8Array,
  rows: Int32Array,
  nodes: Nodes,
  random: Random,
  { maxDepth, minLeaf, criterion, tried }: ForestOptions,
): number {
  const few = tried ?? Math.max(1, Math.round(Math.sqrt(data.features)));
  const order = Int32Array.from({ length: data.features }, (_, feature) => feature);
  const root = nodes.feature.length;
  // The left side is taken from the stack first: a node's left child is the next node.
  const stack: { from: number; to: number; depth: number; parent: number }[] = [
    { from: 0, to: rows.length, depth: 0, parent: -1 },
  ];
  for (let side = stack.pop(); side !== undefined; side = stack.pop()) {
    const { from, to, depth, parent } = side;
    let positives = 0;
    for (let i = from; i < to; i++) positives += labels[rows[i]!]!;
    const node = nodes.leaf(positives / (to - from));
    if (parent >= 0) nodes.right[parent] = node;
    if (depth >= maxDepth || positives === 0 || positives === to - from) continue;
    const best: Split = { feature: -1, bin: 0, gain: 0 };
    // Features that are constant here do not count as tried, or one-hot columns would end trees early.
    for (let i = 0, possible = 0; i < order.length && possible < few; i++) {
      const j = i + randomInt(random, order.length - i);
      const feature = order[j]!;
      order[j] = order[i]!;
      order[i] = feature;
      if (trySplit(data, labels, rows, from, to, feature, criterion, minLeaf, best)) possible++;
    }
    if (best.feature < 0) continue;
    const middle = partition(data, rows, from, to, best);
    nodes.feature[node] = best.feature;
    nodes.probability[node] = 0;
    nodes.threshold[node] = data.edges[best.feature]![best.bin]!;
    nodes.gain[best.feature]! += best.gain;
    stack.push({ from: middle, to, depth: depth + 1, parent: node });
    stack.push({ from, to: middle, depth: depth + 1, parent: -1 });
  }
  return root;
}

/** Rows that go left in front; returns where those that go right begin. */
function partition(
  { bins, count }: BinnedRows,
  rows: Int32Array,
  from: number,
  to: number,
  { feature, bin }: Split,
): number {
  let low = from;
  let high = to;
  while (low < high) {
    const row = rows[low]!;
    if (bins[feature * count + row]! <= bin) low++;
    else {
      high--;
      rows[low] = rows[high]!;
      rows[high] = row;
    }
  }
  return low;
}
