/**
 * Isolation forest (Liu, Ting and Zhou, ICDM 2008) over sparse rows: whoever random cuts part from the rest soonest is
 * the odd one out. L4 §5.3.1 asks it which node's log events differ. Cost: trees · sample · entries of a row · depth.
 */
import { randomInt, seeded, type Random } from "../../src/base/random.ts";
import type { SparseRows } from "../../src/methods/logs/spatial-matrix.ts";

export interface ForestOptions {
  readonly trees?: number;
  readonly sample?: number;
  readonly seed?: number;
}

/** Nodes of all trees behind each other. `left` is -1 at a leaf, and `size` what fell into it. */
export interface IsolationForest {
  readonly roots: readonly number[];
  readonly column: readonly number[];
  readonly cut: readonly number[];
  readonly left: readonly number[];
  readonly right: readonly number[];
  readonly size: readonly number[];
  readonly sample: number;
}

const EULER = 0.5772156649015329;

/** Mean depth at which a search in a tree of `n` ends: what a leaf of `n` rows would still have cost. */
export function meanDepth(n: number): number {
  if (n <= 1) return 0;
  if (n === 2) return 1;
  return 2 * (Math.log(n - 1) + EULER) - (2 * (n - 1)) / n;
}

interface Growing {
  readonly column: number[];
  readonly cut: number[];
  readonly left: number[];
  readonly right: number[];
  readonly size: number[];
}

export function growForest(data: SparseRows, options: ForestOptions = {}): IsolationForest {
  const { trees = 100, sample = 256, seed = 1 } = options;
  const size = Math.min(sample, data.rows);
  const deepest = Math.ceil(Math.log2(Math.max(2, size)));
  const random = seeded(seed);
  const ranges = columnRanges(data.columns);
  const growing: Growing = { column: [], cut: [], left: [], right: [], size: [] };
  const rows = Int32Array.from({ length: data.rows }, (_, row) => row);
  const roots: number[] = [];
  for (let tree = 0; tree < trees && data.rows > 0; tree++) {
    for (let i = 0; i < size; i++) {
      const other = i + randomInt(random, data.rows - i);
      const held = rows[i]!;
      rows[i] = rows[other]!;
      rows[other] = held;
    }
    roots.push(grow(data, rows.slice(0, size), deepest, random, ranges, growing));
  }
  return { roots, ...growing, sample: size };
}

/** Smallest and largest value of the columns that a set of rows has entries in; reused, so that nothing is cleared. */
interface ColumnRanges {
  readonly seen: Int32Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly stamp: Int32Array;
  now: number;
}

function columnRanges(columns: number): ColumnRanges {
  return {
    seen: new Int32Array(columns),
    low: new Float64Array(columns),
    high: new Float64Array(columns),
    stamp: new Int32Array(columns),
    now: 0,
  };
}

function grow(
  data: SparseRows,
  rows: Int32Array,
  depthLeft: number,
  random: Random,
  ranges: ColumnRanges,
  into: Growing,
): number {
  const node = into.size.length;
  into.column.push(-1);
  into.cut.push(0);
  into.left.push(-1);
  into.right.push(-1);
  into.size.push(rows.length);
  if (depthLeft === 0 || rows.length < 2) return node;
  const column = varyingColumn(data, rows, random, ranges);
  if (column < 0) return node;
  const low = ranges.low[column]!;
  const cut = low + random() * (ranges.high[column]! - low);
  const values = Float64Array.from(rows, (row) => valueAt(data, row, column));
  const below = rows.filter((_, i) => values[i]! <= cut);
  const above = rows.filter((_, i) => values[i]! > cut);
  into.column[node] = column;
  into.cut[node] = cut;
  into.left[node] = grow(data, below, depthLeft - 1, random, ranges, into);
  into.right[node] = grow(data, above, depthLeft - 1, random, ranges, into);
  return node;
}

/** One of the columns whose values differ between the rows, each as likely; -1 where none does. */
function varyingColumn(
  data: SparseRows,
  rows: Int32Array,
  random: Random,
  ranges: ColumnRanges,
): number {
  const { seen, low, high, stamp } = ranges;
  const now = ++ranges.now;
  const touched: number[] = [];
  for (const row of rows) {
    for (let at = data.start[row]!; at < data.start[row + 1]!; at++) {
      const column = data.column[at]!;
      const value = data.value[at]!;
      if (stamp[column] !== now) {
        stamp[column] = now;
        seen[column] = 1;
        low[column] = value;
        high[column] = value;
        touched.push(column);
      } else {
        seen[column]!++;
        if (value < low[column]!) low[column] = value;
        if (value > high[column]!) high[column] = value;
      }
    }
  }
  let varying = 0;
  for (const column of touched) {
    if (seen[column]! < rows.length) {
      low[column] = Math.min(0, low[column]!);
      high[column] = Math.max(0, high[column]!);
    }
    if (high[column]! > low[column]!) touched[varying++] = column;
  }
  return varying === 0 ? -1 : touched[randomInt(random, varying)]!;
}

export function valueAt({ start, column, value }: SparseRows, row: number, wanted: number): number {
  let low = start[row]!;
  let high = start[row + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low < start[row + 1]! && column[low] === wanted ? value[low]! : 0;
}

/** By row, 0 to 1: near 1 is odd, 0.5 and below is ordinary (Liu et al., eq. 2). */
export function isolationScores(data: SparseRows, forest: IsolationForest): Float64Array {
  const scores = new Float64Array(data.rows);
  const usual = meanDepth(forest.sample);
  for (let row = 0; row < data.rows; row++) {
    let sum = 0;
    for (const root of forest.roots) sum += depthOf(data, forest, root, row);
    const mean = forest.roots.length === 0 ? usual : sum / forest.roots.length;
    scores[row] = usual === 0 ? 0 : 2 ** (-mean / usual);
  }
  return scores;
}

function depthOf(data: SparseRows, forest: IsolationForest, root: number, row: number): number {
  let node = root;
  let depth = 0;
  for (; forest.left[node]! >= 0; depth++) node = next(data, forest, node, row);
  return depth + meanDepth(forest.size[node]!);
}

function next(data: SparseRows, forest: IsolationForest, node: number, row: number): number {
  return valueAt(data, row, forest.column[node]!) <= forest.cut[node]!
    ? forest.left[node]!
    : forest.right[node]!;
}

/**
 * What parted a row from the others: by column, how many halvings its cuts saved beyond the one that any even cut makes.
 * Sums over trees, so only comparisons within a row mean something.
 */
export function contributions(
  data: SparseRows,
  forest: IsolationForest,
  row: number,
): Map<number, number> {
  const byColumn = new Map<number, number>();
  for (const root of forest.roots) {
    for (let node = root; forest.left[node]! >= 0;) {
      const below = next(data, forest, node, row);
      const saved = Math.log2(forest.size[node]! / Math.max(1, forest.size[below]!)) - 1;
      const column = forest.column[node]!;
      if (saved > 0) byColumn.set(column, (byColumn.get(column) ?? 0) + saved);
      node = below;
    }
  }
  return byColumn;
}
