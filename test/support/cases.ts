/** Tables of cases: a few of them in `npm test`, all of them in `npm run test:system`. */

/** Set for the project that asks all (vitest.config.ts). */
export const ALL_CASES = "FAULTLINE_TEST_ALL_CASES";

/** A number for `npm test`, and one for all cases. */
export function runs(few: number, all: number): number {
  return process.env[ALL_CASES] === undefined ? few : all;
}

/** So many of the cases, evenly spread, the first among them; all where all are asked for. */
export function few<T>(cases: readonly T[], count: number): readonly T[] {
  if (process.env[ALL_CASES] !== undefined || cases.length <= count) return cases;
  return Array.from({ length: count }, (_, i) => cases[Math.floor((i * cases.length) / count)]!);
}
