/**
 * Radix-2 Fourier transform and what is built on it. In place, on a pair of columns: no library, because
 * the periods of calls are the only use and 80 lines do.
 */
import { assert } from "../base/errors.ts";

/** Cosines and sines of half a turn in n steps; the sizes that a run uses are few. */
const turns = new Map<number, { cos: Float64Array; sin: Float64Array }>();

function turn(n: number): { cos: Float64Array; sin: Float64Array } {
  const known = turns.get(n);
  if (known) return known;
  const cos = new Float64Array(n / 2);
  const sin = new Float64Array(n / 2);
  for (let i = 0; i < n / 2; i++) {
    cos[i] = Math.cos((2 * Math.PI * i) / n);
    sin[i] = Math.sin((2 * Math.PI * i) / n);
  }
  const made = { cos, sin };
  // Large tables are rarely asked for twice; small ones are, thousands of times.
  if (n <= 1 << 16) turns.set(n, made);
  return made;
}

/** X_k = Σ x_t e^(-2πi·kt/n), in place; n must be a power of two. Swap `re` and `im` for the inverse times n. */
export function fft(re: Float64Array, im: Float64Array): void {
  const n = re.length;
  assert(n > 0 && (n & (n - 1)) === 0 && im.length === n, "the size of an FFT is a power of two");
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      const r = re[i]!;
      re[i] = re[j]!;
      re[j] = r;
      const m = im[i]!;
      im[i] = im[j]!;
      im[j] = m;
    }
  }
  if (n < 2) return;
  const { cos, sin } = turn(n);
  for (let half = 1; half < n; half *= 2) {
    const step = n / (2 * half);
    for (let start = 0; start < n; start += 2 * half) {
      for (let i = start, t = 0; i < start + half; i++, t += step) {
        const j = i + half;
        const c = cos[t]!;
        const s = sin[t]!;
        const r = re[j]! * c + im[j]! * s;
        const m = im[j]! * c - re[j]! * s;
        re[j] = re[i]! - r;
        im[j] = im[i]! - m;
        re[i] = re[i]! + r;
        im[i] = im[i]! + m;
      }
    }
  }
}

/**
 * Autocorrelation at the lags 0..maxLag, from -1 to 1. Greyhound's formula (§4.2) sums L - k products but
 * divides by the energy of all L values, so that it cannot exceed (L - k) / L: a period above 5 % of the
 * window would never reach the threshold of 0.95. Here the products are divided by the energy of the values
 * that overlap; exact repetition gives 1 at any lag. Values that never differ count as repeating.
 */
export function autocorrelation(values: Float64Array, maxLag: number): Float64Array {
  const n = values.length;
  const lags = Math.max(0, Math.min(maxLag, n - 1));
  const result = new Float64Array(lags + 1);
  if (n === 0) return result;
  let mean = 0;
  for (let i = 0; i < n; i++) mean += values[i]!;
  mean /= n;
  let size = 1;
  // Zeros behind the values keep the circular products of the lags asked for from wrapping around.
  while (size < n + lags) size *= 2;
  const re = new Float64Array(size);
  const im = new Float64Array(size);
  /** Energy of the first i values. */
  const energy = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) {
    const value = values[i]! - mean;
    re[i] = value;
    energy[i + 1] = energy[i]! + value * value;
  }
  fft(re, im);
  for (let i = 0; i < size; i++) {
    re[i] = re[i]! * re[i]! + im[i]! * im[i]!;
    im[i] = 0;
  }
  // The spectrum of energies is real and even: forward and inverse transform are the same, up to 1/size.
  fft(re, im);
  const none = 1e-12 * Math.max(energy[n]!, n * mean * mean, Number.MIN_VALUE);
  for (let lag = 0; lag <= lags; lag++) {
    const overlap = Math.sqrt(energy[n - lag]! * (energy[n]! - energy[lag]!));
    if (energy[n]! <= none) result[lag] = 1;
    else if (overlap > none) result[lag] = Math.max(-1, Math.min(1, re[lag]! / size / overlap));
  }
  return result;
}
