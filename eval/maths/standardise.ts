/** Columns brought to mean 0 and deviation 1: distances and margins would otherwise be those of the largest unit. */
export interface Scale {
  readonly mean: Float64Array;
  /** 1 where a column is constant. */
  readonly deviation: Float64Array;
}

export function scaleOf(rows: Float64Array, features: number): Scale {
  const mean = new Float64Array(features);
  const deviation = new Float64Array(features);
  const count = rows.length / features;
  for (let i = 0; i < rows.length; i++) mean[i % features]! += rows[i]! / count;
  for (let i = 0; i < rows.length; i++)
    deviation[i % features]! += (rows[i]! - mean[i % features]!) ** 2 / count;
  return { mean, deviation: deviation.map((square) => Math.sqrt(square) || 1) };
}

export function standardise(rows: Float64Array, { mean, deviation }: Scale): Float64Array {
  const features = mean.length;
  return rows.map((value, i) => (value - mean[i % features]!) / deviation[i % features]!);
}
