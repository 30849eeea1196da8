/** What takes too long for every change: a few cases of a table in `npm test` and CI, all in `npm run test:long`. */
import { describe, it } from "vitest";

/** Set for the project that asks all (vitest.config.ts). */
export const ALL_CASES = "FAULTLINE_TEST_ALL_CASES";

const isLong = process.env[ALL_CASES] !== undefined;

/** A test, or a group of them, of `npm run test:long` alone. */
export const longTest = it.skipIf(!isLong);
export const longGroup = describe.skipIf(!isLong);

/** A number for `npm test`, and one for all cases. */
export function runs(few: number, all: number): number {
  return isLong ? all : few;
}

/** So many of the cases, evenly spread, the first among them; all where all are asked for. */
export function few<T>(cases: readonly T[], count: number): readonly T[] {
  if (isLong || cases.length <= count) return cases;
  return Array.from({ length: count }, (_, i) => cases[Math.floor((i * cases.length) / count)]!);
}

/** The first case of every kind; all where all are asked for. */
export function oneOfEach<T>(cases: readonly T[], kindOf: (one: T) => string): readonly T[] {
  if (isLong) return cases;
  const kinds = cases.map(kindOf);
  return cases.filter((_, i) => kinds.indexOf(kinds[i]!) === i);
}
