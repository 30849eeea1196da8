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
