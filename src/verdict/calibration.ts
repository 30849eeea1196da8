/**
 * From a probability by the rules to how often such verdicts are right. Two measures, one after the other: on simulated jobs,
 * of which there are many (straight lines in between), and on recordings of real ones, which are few: what a method has
 * earned by being right there bounds what any verdict of its may claim.
 */
import type { VerdictKind } from "../model/finding.ts";
import { KNOTS } from "./calibration-table.ts";
import { EARNED, UNPROVEN } from "./earned-table.ts";

export function calibrated(probability: number): number {
  const above = KNOTS.findIndex(([at]) => at >= probability);
  if (above === 0) return KNOTS[0]![1];
  if (above < 0) return KNOTS.at(-1)![1];
  const [x0, y0] = KNOTS[above - 1]!;
  const [x1, y1] = KNOTS[above]!;
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (probability - x0)) / (x1 - x0);
}

/** 0..1: what is left of a verdict's confidence. `method`: whose word weighed most; "nobody" where nobody is accused. */
export function earned(kind: VerdictKind, method: string): number {
  return EARNED[kind]?.[method] ?? UNPROVEN;
}
