/**
 * The period of a series, where it has one: the largest line of its spectrum (Holmes, appendix B), if it
 * stands out more than the largest line of noise would (Fisher's test).
 */
interface Dominant {
  /** Points from one peak to the next. */
  readonly period: number;
  /** Share of all variation in that line. */
  readonly share: number;
  /** Probability that noise alone has so large a line. */
  readonly chance: number;
}

/** Lines of the spectrum are computed directly: a bounded window needs no FFT. */
const MAX_POINTS = 2048;

export function dominantPeriod(values: ArrayLike<number>): Dominant | null {
  const length = Math.min(values.length, MAX_POINTS);
  if (length < 12) return null;
  let mean = 0;
  for (let i = 0; i < length; i++) mean += values[i]! / length;
  const lines = Math.floor((length - 1) / 2);
  let total = 0;
  let largest = 0;
  let at = 0;
  for (let k = 1; k <= lines; k++) {
    const power = powerAt(values, length, mean, k);
    total += power;
    if (power > largest) {
      largest = power;
      at = k;
    }
  }
  // Rounding of the mean is no rhythm.
  if (total <= (1e-12 * mean * length) ** 2) return null;
  const share = largest / total;
  // Fisher's g: the first term of the sum is an upper bound of the probability.
  const chance = Math.min(1, lines * (1 - share) ** (lines - 1));
  const found = refine(values, length, mean, at);
  return { period: length / fundamental(values, length, mean, found), share, chance };
}

function powerAt(values: ArrayLike<number>, length: number, mean: number, k: number): number {
  const step = (2 * Math.PI * k) / length;
  // Goertzel's recurrence: one multiplication a point.
  const c = 2 * Math.cos(step);
  let s1 = 0;
  let s2 = 0;
  for (let i = 0; i < length; i++) {
    const s0 = values[i]! - mean + c * s1 - s2;
    s2 = s1;
    s1 = s0;
  }
  return s1 * s1 + s2 * s2 - c * s1 * s2;
}

/** Short beats have harmonics as strong as themselves: the slowest of them is the beat. */
function fundamental(
  values: ArrayLike<number>,
  length: number,
  mean: number,
  found: number,
): number {
  const strong = 0.3 * powerAt(values, length, mean, found);
  for (let part = Math.floor(found / 2); part >= 2; part--)
    if (powerAt(values, length, mean, found / part) >= strong) return found / part;
  return found;
}

/** The true frequency lies between lines: the largest power nearby. */
function refine(values: ArrayLike<number>, length: number, mean: number, at: number): number {
  let best = at;
  let largest = 0;
  for (let k = at - 0.5; k <= at + 0.5; k += 0.05) {
    const power = powerAt(values, length, mean, k);
    if (power > largest) {
      largest = power;
      best = k;
    }
  }
  return best;
}
