/**
 * Measured by `npm run eval -- fit` (eval/joint/fit.ts says how): some hundred verdicts with a suspect, of the joint scenarios of 64 GPUs from
 * seed 63001 on, with five sets of inputs each. The curves of reliability-table.ts and the figures of
 * docs/evaluation.md are of other seeds.
 */

export type Knots = readonly (readonly [at: number, right: number])[];

/**
 * Probability by the judge of slowness → share of its answers that were right, ascending: on recordings of real jobs, each family
 * judged by a judge that the others taught. As stated, until it is fitted.
 */
export const JUDGED_KNOTS: Knots = [
  [0, 0],
  [0.99, 0.99],
];

/** Probability by the rules → share of verdicts that were right, ascending. */
export const KNOTS: Knots = [
  [0, 0],
  [0.631, 0.807],
  [0.861, 0.914],
  [0.953, 0.99],
  [0.988, 0.997],
  [0.995, 0.999],
  [0.999, 1],
  [1, 1],
  [1, 1],
  [1, 1],
];

/**
 * How often it was right that nobody was accused. Healthy: 191 of 191 of these seeds and those of the curves, at several commits; less is claimed,
 * for faults that nobody would have seen. The others by judgement: that a job hangs or is slow without a culprit is half an
 * answer at most, and "undetermined" is none.
 */
export const NOBODY = {
  healthy: 0.95,
  unmeasured: 0.6,
  undetermined: 0.2,
  hang: 0.2,
  slow: 0.3,
} as const;
