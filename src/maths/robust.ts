/** Medians and spreads that a few wild points do not move. */

/** Below this, sorting by insertion into one buffer is several times faster than an array of its own. */
const SMALL = 48;
const buffer = new Float64Array(SMALL);

/** NaN of no values; the values must be numbers. */
export function median(values: ArrayLike<number>): number {
  const { length } = values;
  if (length === 0) return NaN;
  const sorted = length <= SMALL ? insertionSorted(values) : Float64Array.from(values).sort();
  const middle = length >> 1;
  return length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function insertionSorted(values: ArrayLike<number>): Float64Array {
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    let at = i;
    for (; at > 0 && buffer[at - 1]! > value; at--) buffer[at] = buffer[at - 1]!;
    buffer[at] = value;
  }
  return buffer;
}

/** 1.4826: the median of |x| of a normal variable is 0.6745 of its deviation. */
export const TO_DEVIATION = 1.4826;

/** Standard deviation as the median of the distances from the median tells it. */
export function spread(values: ArrayLike<number>, centre = median(values)): number {
  const distances = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) distances[i] = Math.abs(values[i]! - centre);
  return TO_DEVIATION * median(distances);
}
