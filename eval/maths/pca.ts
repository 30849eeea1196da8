/** Principal components of a few features of many points, by Jacobi's rotations. */

interface Components {
  /** Descending. */
  readonly variances: Float64Array;
  /** Component k's weight on feature f at k · features + f; each of length 1. */
  readonly vectors: Float64Array;
}

/** Of a symmetric matrix, row-major. */
export function eigen(matrix: Float64Array, size: number): Components {
  const a = matrix.slice();
  const v = new Float64Array(size * size);
  for (let i = 0; i < size; i++) v[i * size + i] = 1;
  for (let sweep = 0; sweep < 50; sweep++) {
    let off = 0;
    let on = 0;
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++) {
        if (i === j) on += a[i * size + j]! ** 2;
        else off += a[i * size + j]! ** 2;
      }
    if (off <= 1e-24 * on) break;
    for (let p = 0; p < size; p++) for (let q = p + 1; q < size; q++) rotate(a, v, size, p, q);
  }
  const order = Array.from({ length: size }, (_, k) => k);
  order.sort((x, y) => a[y * size + y]! - a[x * size + x]!);
  return {
    variances: Float64Array.from(order, (k) => a[k * size + k]!),
    vectors: Float64Array.from(order.flatMap((k) => Array.from(v.slice(k * size, (k + 1) * size)))),
  };
}

/** Makes a[p][q] zero; rows of `v` are the components. */
function rotate(a: Float64Array, v: Float64Array, size: number, p: number, q: number): void {
  const apq = a[p * size + q]!;
  if (apq === 0) return;
  const theta = (a[q * size + q]! - a[p * size + p]!) / (2 * apq);
  const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const c = 1 / Math.sqrt(t * t + 1);
  const s = t * c;
  for (let k = 0; k < size; k++) {
    const [x, y] = [a[k * size + p]!, a[k * size + q]!];
    a[k * size + p] = c * x - s * y;
    a[k * size + q] = s * x + c * y;
  }
  for (let k = 0; k < size; k++) {
    const [x, y] = [a[p * size + k]!, a[q * size + k]!];
    a[p * size + k] = c * x - s * y;
    a[q * size + k] = s * x + c * y;
    const [vx, vy] = [v[p * size + k]!, v[q * size + k]!];
    v[p * size + k] = c * vx - s * vy;
    v[q * size + k] = s * vx + c * vy;
  }
}

/** Components below this share of the largest variance are rounding, and scaling them up would make noise of it. */
const NOTHING = 1e-9;

/**
 * Turns points to their principal components, each scaled to variance 1: Euclid's distances are then Mahalanobis'.
 * Feature f of point i at f · stride + i, in place; features are first brought to variance 1 each, for a variance and
 * a kurtosis have no common unit. Components without variance become 0.
 */
export function whiten(rows: Float32Array, stride: number, count: number, features: number): void {
  const at = (f: number): Float32Array => rows.subarray(f * stride, f * stride + count);
  for (let f = 0; f < features; f++) {
    const row = at(f);
    const mean = row.reduce((sum, value) => sum + value, 0) / count;
    const square = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count;
    const scale = square > 1e-16 * (1 + mean * mean) ? 1 / Math.sqrt(square) : 0;
    for (let i = 0; i < count; i++) row[i] = (row[i]! - mean) * scale;
  }
  const covariance = new Float64Array(features * features);
  for (let f = 0; f < features; f++)
    for (let g = 0; g <= f; g++) {
      const [x, y] = [at(f), at(g)];
      let sum = 0;
      for (let i = 0; i < count; i++) sum += x[i]! * y[i]!;
      covariance[f * features + g] = covariance[g * features + f] = sum / count;
    }
  const { variances, vectors } = eigen(covariance, features);
  const scales = variances.map((variance) =>
    variance > NOTHING * variances[0]! ? 1 / Math.sqrt(variance) : 0,
  );
  const point = new Float64Array(features);
  for (let i = 0; i < count; i++) {
    for (let f = 0; f < features; f++) point[f] = rows[f * stride + i]!;
    for (let k = 0; k < features; k++) {
      let sum = 0;
      for (let f = 0; f < features; f++) sum += vectors[k * features + f]! * point[f]!;
      rows[k * stride + i] = sum * scales[k]!;
    }
  }
}
