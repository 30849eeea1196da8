/** Quantiles of Student's t distribution with an even number of degrees of freedom, where the tail has a closed form. */

/** P(T > t). */
export function studentTail(t: number, degrees: number): number {
  // Abramowitz & Stegun 26.7.4; the sum is over 1 - x², so that it stays exact far out.
  const square = degrees / (degrees + t * t);
  const x = Math.sqrt(1 - square);
  let term = 1;
  let sum = 1;
  for (let j = 1; j < degrees / 2; j++) {
    term *= (square * (2 * j - 1)) / (2 * j);
    sum += term;
  }
  return (1 - Math.sign(t) * x * sum) / 2;
}

/** The t that is exceeded with the given probability, 1e-13 or more and at most a half. */
export function studentQuantile(probability: number, degrees: number): number {
  let low = 0;
  let high = 1;
  while (studentTail(high, degrees) > probability && high < 1e6) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (studentTail(middle, degrees) > probability) low = middle;
    else high = middle;
  }
  return high;
}
