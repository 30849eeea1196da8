/**
 * The features of the Mahalanobis baseline (§6.1): mean, variance, skewness and kurtosis of a window, turned to their
 * principal components over the machines and scaled to the same variance, where Euclid's distance is Mahalanobis'.
 */
import { whiten } from "../../maths/pca.ts";

export const MOMENTS = 4;

/** Reads windows of `length` ticks at `from` (rows of `stride` machines), writes MOMENTS rows to `to`. */
export function momentsInto(
  to: Float32Array,
  series: Float32Array,
  from: number,
  length: number,
  stride: number,
  machines: number,
): void {
  for (let m = 0; m < machines; m++) {
    let mean = 0;
    for (let s = 0; s < length; s++) mean += series[from + s * stride + m]! / length;
    let [second, third, fourth] = [0, 0, 0];
    for (let s = 0; s < length; s++) {
      const off = series[from + s * stride + m]! - mean;
      const square = off * off;
      second += square / length;
      third += (square * off) / length;
      fourth += (square * square) / length;
    }
    // A constant window has no shape: 0, not the quotient of rounding errors.
    const isFlat = second < 1e-12;
    to[m] = mean;
    to[stride + m] = second;
    to[2 * stride + m] = isFlat ? 0 : third / second ** 1.5;
    to[3 * stride + m] = isFlat ? 0 : fourth / (second * second) - 3;
  }
  whiten(to, stride, machines, MOMENTS);
}
