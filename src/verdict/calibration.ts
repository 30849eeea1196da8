/** From a probability by the rules to how often such verdicts are right: measured, and straight lines in between. */
import { KNOTS } from "./calibration-table.ts";

export function calibrated(probability: number): number {
  const above = KNOTS.findIndex(([at]) => at >= probability);
  if (above === 0) return KNOTS[0]![1];
  if (above < 0) return KNOTS.at(-1)![1];
  const [x0, y0] = KNOTS[above - 1]!;
  const [x1, y1] = KNOTS[above]!;
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (probability - x0)) / (x1 - x0);
}
