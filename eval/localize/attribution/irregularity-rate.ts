/**
 * How much of an irregularity is seen in the iterations (Holmes §4.4): R(x), Pearson's correlation of the abnormal
 * operator's durations with the iterations' over a window. An operator that is long when iterations are not explains
 * nothing, however abnormal it looks.
 */

/** Holmes §5.1, "System configuration". */
const RATE_WINDOW_ITERATIONS = 100;
/** Two points lie on a line whatever they are. */
const LEAST_ITERATIONS = 3;
/** Of the mean square: rounding leaves a constant series a variance of this order, and no constant correlates. */
const NO_VARIANCE = 1e-24;

/**
 * In [0, 1]; by iteration, any unit, the shorter series decides. Iterations in which either is not a finite number are
 * left out. 0 where nothing can be said (too few iterations, one of the series constant), and 0 instead of a negative
 * correlation: I(d) adds rates up, and an operator that shrinks in slow iterations speaks for nobody's innocence.
 */
export function irregularityRate(
  series: ArrayLike<number>,
  iterationMs: ArrayLike<number>,
  window = RATE_WINDOW_ITERATIONS,
): number {
  const end = Math.min(series.length, iterationMs.length);
  const from = Math.max(0, end - window);
  let count = 0;
  let [sumX, sumY] = [0, 0];
  for (let i = from; i < end; i++) {
    if (!Number.isFinite(series[i]!) || !Number.isFinite(iterationMs[i]!)) continue;
    count++;
    sumX += series[i]!;
    sumY += iterationMs[i]!;
  }
  if (count < LEAST_ITERATIONS) return 0;
  const [meanX, meanY] = [sumX / count, sumY / count];
  // In a second pass: E[x²] − E[x]² cancels for operators of seconds that vary by microseconds.
  let [xx, yy, xy] = [0, 0, 0];
  for (let i = from; i < end; i++) {
    if (!Number.isFinite(series[i]!) || !Number.isFinite(iterationMs[i]!)) continue;
    const x = series[i]! - meanX;
    const y = iterationMs[i]! - meanY;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  const isConstant = (squares: number, mean: number): boolean =>
    squares / count <= NO_VARIANCE * mean * mean;
  if (isConstant(xx, meanX) || isConstant(yy, meanY)) return 0;
  // Two roots: the product of the squares can overflow where neither does.
  const rate = xy / (Math.sqrt(xx) * Math.sqrt(yy));
  return Number.isFinite(rate) ? Math.min(1, Math.max(0, rate)) : 0;
}
