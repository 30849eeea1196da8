/**
 * From a probability by the rules to how often such verdicts are right. Two measures, one after the other: on simulated jobs,
 * of which there are many (straight lines in between), and on recordings of real ones, which are few: what a method has
 * earned by being right there bounds what any verdict of its may claim. The judge of slowness has a map of its own, and nothing
 * after it.
 */
import { factOf } from "../model/facts.ts";
import type { Finding, VerdictKind } from "../model/finding.ts";
import { JUDGED_KNOTS, KNOTS, type Knots } from "./calibration-table.ts";
import { EARNED, UNPROVEN } from "./earned-table.ts";

export function calibrated(probability: number, knots: Knots = KNOTS): number {
  const above = knots.findIndex(([at]) => at >= probability);
  if (above === 0) return knots[0]![1];
  if (above < 0) return knots.at(-1)![1];
  const [x0, y0] = knots[above - 1]!;
  const [x1, y1] = knots[above]!;
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (probability - x0)) / (x1 - x0);
}

/** How sure the judge of slowness (methods/slow) is: of whom a finding names, or that nobody is slow; null: it is not the judge's. */
export function judgedConfidence(finding: Pick<Finding, "data">): number | null {
  const slow = factOf(finding, "slow-rank", "slow-device")?.judged;
  const probability = (slow ?? factOf(finding, "even-ranks"))?.probability;
  return probability === undefined ? null : calibrated(probability, JUDGED_KNOTS);
}

/** 0..1: what is left of a verdict's confidence. `method`: whose word weighed most; "nobody" where nobody is accused. */
export function earned(kind: VerdictKind, method: string): number {
  return EARNED[kind]?.[method] ?? UNPROVEN;
}
