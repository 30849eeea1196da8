/** What a few iterations tell of each replica's time for a micro-batch, and how sure that is. */

/** A candidate has to be better by this share, or it is not worth a change … */
const MARGIN = 0.03;
/** … and by twice what the noise of the job's own times leaves open. */
const MARGIN_ERRORS = 2;
/** Replicas whose times lie within so many standard errors of the middle one's are taken for alike. */
const ALIKE_ERRORS = 4;

export interface Estimate {
  /** By replica: seconds of a micro-batch. Replicas that noise alone may tell apart have the same. */
  readonly times: Float64Array;
  /** What a change to uneven shares has to gain. */
  readonly margin: number;
}

/** `latest`: the last few of the rows, which tell the times; all of them tell the noise. */
export function estimateTimes(
  latest: readonly Float64Array[],
  rows: readonly Float64Array[],
): Estimate {
  const measured = middle(latest);
  const error = noiseOf(rows) / Math.sqrt(latest.length);
  const usual = medianOf(measured);
  const isUsual = (time: number): boolean =>
    Math.abs(Math.log(time / usual)) <= ALIKE_ERRORS * error;
  return {
    times: measured.map((time) => (isUsual(time) ? usual : time)),
    margin: Math.max(MARGIN, MARGIN_ERRORS * error),
  };
}

export function middle(rows: readonly Float64Array[]): Float64Array {
  return Float64Array.from(rows[0]!, (_, i) => medianOf(rows.map((row) => row[i]!)));
}

/**
 * Relative standard error of a median, before it is divided by the root of how many it is of. From steps between
 * neighbouring iterations, of all replicas together: a level that moves is one step of many. (1.4826: median of |x| to
 * deviation; √2: a step has the noise of two; 1.2533: a median is that much less sure than a mean.)
 */
function noiseOf(rows: readonly Float64Array[]): number {
  const steps = rows
    .slice(1)
    .flatMap((row, k) => Array.from(row, (time, i) => Math.abs(Math.log(time / rows[k]![i]!))));
  return (1.2533 * 1.4826 * medianOf(steps)) / Math.SQRT2;
}

export function medianOf(values: Iterable<number>): number {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
