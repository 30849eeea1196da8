/** Measured; written by `npm run eval -- fit` (eval/joint/fit.ts says how). */

/** Probability by the rules → share of verdicts that were right, ascending. */
export const KNOTS: readonly (readonly [at: number, right: number])[] = [
  [0, 0],
  [1, 1],
];

/** How often it was right that nobody was accused: of jobs called healthy, and of those of which nothing could be said. */
export const NOBODY = { healthy: 0.6, even: 0.2, undetermined: 0.2, hang: 0.2 } as const;
