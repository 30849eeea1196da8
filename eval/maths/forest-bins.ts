/**
 * Values as the numbers of bins, so that a split is a pass over 256 counters and not a sort. Bins end at
 * the middle between two neighbouring values; a column of up to 256 distinct values loses nothing.
 */
const BINS = 256;

export interface BinnedRows {
  readonly count: number;
  readonly features: number;
  /** Column-major: feature f of row r at f · count + r. */
  readonly bins: Uint8Array;
  /** By feature: bin b holds the values v with edges[b - 1] < v ≤ edges[b], ascending. */
  readonly edges: readonly Float64Array[];
}

/** Rows row-major; NaN goes into the last bin, as it goes right in a tree. */
export function binRows(rows: Float64Array, features: number): BinnedRows {
  const count = rows.length / features;
  const bins = new Uint8Array(rows.length);
  const edges: Float64Array[] = [];
  const column = new Float64Array(count);
  for (let feature = 0; feature < features; feature++) {
    for (let row = 0; row < count; row++) column[row] = rows[row * features + feature]!;
    const own = edgesOf(column.slice().sort());
    edges.push(own);
    for (let row = 0; row < count; row++) bins[feature * count + row] = binOf(own, column[row]!);
  }
  return { count, features, bins, edges };
}

/**
 * Edges are rounded to float32 before any value is put into a bin: what a tree learns and what a stored
 * tree decides are then the same, whatever the rounding did.
 */
function edgesOf(sorted: Float64Array): Float64Array {
  const starts: number[] = [];
  for (let i = 1; i < sorted.length; i++) if (sorted[i]! > sorted[i - 1]!) starts.push(i);
  const edges: number[] = [];
  const add = (start: number): void => {
    const edge = Math.fround(sorted[start - 1]! + (sorted[start]! - sorted[start - 1]!) / 2);
    if (Number.isFinite(edge) && (edges.length === 0 || edge > edges.at(-1)!)) edges.push(edge);
  };
  if (starts.length < BINS) starts.forEach(add);
  else {
    // Equal shares of the rows; a value that many rows have takes several shares and one edge.
    let next = 0;
    for (let bin = 1; bin < BINS; bin++) {
      const wanted = (bin * sorted.length) / BINS;
      while (next < starts.length && starts[next]! < wanted) next++;
      if (next === starts.length) break;
      add(starts[next]!);
      next++;
    }
  }
  return Float64Array.from(edges);
}

/** How many edges lie below the value. */
function binOf(edges: Float64Array, value: number): number {
  if (Number.isNaN(value)) return edges.length;
  let low = 0;
  let high = edges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
