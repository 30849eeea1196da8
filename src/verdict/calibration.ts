/**
 * From a probability by the rules to how often such verdicts are right. Two measures, one after the other: on simulated jobs,
 * of which there are many (straight lines in between), and on recordings of real ones, which are few: what a method has
 * earned by being right there bounds what any verdict of its may claim.
 */
import type { VerdictKind } from "../model/finding.ts";
import { EARNED, UNPROVEN } from "./earned-table.ts";

/**
 * Probability → share of verdicts that were right, ascending. Measured by `npm run eval -- fit` (eval/joint/fit.ts says how): some
 * hundred verdicts with a suspect, of the joint scenarios of 64 GPUs from seed 63001 on, with five sets of inputs each. The
 * curves of reliability.ts and the figures of docs/evaluation.md are of other seeds.
 */
const KNOTS: readonly (readonly [at: number, right: number])[] = [
  [0, 0],
  [0.631, 0.807],
  [0.861, 0.914],
  [0.953, 0.99],
  [0.988, 0.997],
  [0.995, 0.999],
  [0.999, 1],
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

export function calibrated(probability: number): number {
  const above = Math.max(
    1,
    KNOTS.findIndex(([at]) => at >= probability),
  );
  const [x0, y0] = KNOTS[above - 1]!;
  const [x1, y1] = KNOTS[above]!;
  return y0 + ((y1 - y0) * (probability - x0)) / (x1 - x0);
}

/** 0..1: what is left of a verdict's confidence. `method`: whose word weighed most; "nobody" where nobody is accused. */
export function earned(kind: VerdictKind, method: string): number {
  return EARNED[kind]?.[method] ?? UNPROVEN;
}
