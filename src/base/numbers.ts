/** Largest of many: Math.max(...list) overflows the stack at some hundred thousand. */
export function largest(values: Iterable<number>, start: number): number {
  let most = start;
  for (const value of values) if (value > most) most = value;
  return most;
}

export function smallest(values: Iterable<number>, start: number): number {
  let least = start;
  for (const value of values) if (value < least) least = value;
  return least;
}

/** To three digits behind the point, as documents have it. */
export function thousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}

export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}
