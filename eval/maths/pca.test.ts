import { describe, expect, it } from "vitest";
import { seeded } from "../../src/base/random.ts";
import { eigen, whiten } from "./pca.ts";
import { gaussian } from "../../test/support/noise.ts";

describe("principal components", () => {
  it("are the eigenvectors of a symmetric matrix", () => {
    const random = seeded(2);
    const size = 5;
    const matrix = new Float64Array(size * size);
    for (let i = 0; i < size; i++)
      for (let j = 0; j <= i; j++) matrix[i * size + j] = matrix[j * size + i] = gaussian(random);
    const { variances, vectors } = eigen(matrix, size);
    for (let k = 0; k < size; k++) {
      if (k > 0) expect(variances[k]).toBeLessThanOrEqual(variances[k - 1]!);
      const vector = vectors.subarray(k * size, (k + 1) * size);
      expect(Math.hypot(...vector)).toBeCloseTo(1, 9);
      for (let i = 0; i < size; i++) {
        const row = matrix.subarray(i * size, (i + 1) * size);
        const product = row.reduce((sum, value, j) => sum + value * vector[j]!, 0);
        expect(product).toBeCloseTo(variances[k]! * vector[i]!, 9);
      }
    }
  });

  it("make Mahalanobis' distances Euclid's", () => {
    const random = seeded(3);
    const count = 50;
    const stride = 52;
    const rows = new Float32Array(2 * stride);
    for (let i = 0; i < count; i++) {
      const x = gaussian(random);
      rows[i] = 100 + 5 * x;
      rows[stride + i] = 0.01 * (x + 0.5 * gaussian(random));
    }
    // By hand: (a - b)ᵀ S⁻¹ (a - b), S the covariance.
    const [x, y] = [rows.slice(0, count), rows.slice(stride, stride + count)];
    const mean = (list: Float32Array): number =>
      list.reduce((sum, value) => sum + value, 0) / count;
    const covariance = (a: Float32Array, b: Float32Array): number =>
      a.reduce((sum, value, i) => sum + (value - mean(a)) * (b[i]! - mean(b)), 0) / count;
    const [xx, xy, yy] = [covariance(x, x), covariance(x, y), covariance(y, y)];
    const determinant = xx * yy - xy * xy;
    whiten(rows, stride, count, 2);
    for (let i = 1; i < count; i++) {
      const [dx, dy] = [x[i]! - x[0]!, y[i]! - y[0]!];
      const square = (yy * dx * dx - 2 * xy * dx * dy + xx * dy * dy) / determinant;
      const found = Math.hypot(rows[i]! - rows[0]!, rows[stride + i]! - rows[stride]!);
      expect(found).toBeCloseTo(Math.sqrt(square), 3);
    }
  });

  it("lie around 0 with variance 1 each, and vary on their own", () => {
    const random = seeded(5);
    const [count, features] = [400, 3];
    const rows = new Float32Array(features * count);
    for (let i = 0; i < count; i++) {
      const x = gaussian(random);
      rows[i] = 40 + 3 * x;
      rows[count + i] = x + gaussian(random);
      rows[2 * count + i] = 1e4 * gaussian(random);
    }
    whiten(rows, count, count, features);
    const of = (f: number): Float32Array => rows.subarray(f * count, (f + 1) * count);
    for (let f = 0; f < features; f++) {
      expect(of(f).reduce((sum, value) => sum + value, 0) / count).toBeCloseTo(0, 4);
      for (let g = 0; g <= f; g++) {
        const product = of(f).reduce((sum, value, i) => sum + value * of(g)[i]!, 0) / count;
        expect(product).toBeCloseTo(f === g ? 1 : 0, 3);
      }
    }
  });

  it("leave out what does not vary", () => {
    const rows = Float32Array.of(1, 2, 3, 4, 7, 7, 7, 7);
    whiten(rows, 4, 4, 2);
    expect([...rows].every(Number.isFinite)).toBe(true);
    expect([...rows.subarray(4)]).toEqual([0, 0, 0, 0]);
  });
});
