/**
 * Distribution drift (§4.2.2, figure 10): over a month a job's iterations become some per cent longer, and a
 * forest that learnt "iteration ≤ 9.0 s" is wrong by that. Holmes does not train anew, which would need
 * labels; it adds to every threshold on a feature what that feature's mean has moved by. Appendix E compares
 * the mean with P75 and P99, which follow the irregularities themselves.
 *
 * "ratio" is ours: operators' times span orders of magnitude, and what adds 0.5 ms to their mean adds
 * nothing to most and seconds to some, so it stretches thresholds by the quotient of the means instead.
 */
import type { Forest } from "../../maths/forest-grow.ts";
import { quantilePlace } from "../../../src/maths/quickselect.ts";
import { SCALE_FEATURES } from "./features.ts";

export type Statistic = "mean" | "p75" | "p99" | "ratio";

/** By feature; 0 for those without a scale. */
export type FeatureLevels = Float64Array;

/** The level of each scale-dependent feature over some rows, row-major. */
export function featureLevels(
  rows: Float64Array,
  features: number,
  statistic: Statistic,
): FeatureLevels {
  const levels = new Float64Array(features);
  const count = rows.length / features;
  if (count === 0) return levels;
  const column = new Float64Array(count);
  for (const feature of SCALE_FEATURES) {
    for (let row = 0; row < count; row++) column[row] = rows[row * features + feature]!;
    if (statistic === "mean" || statistic === "ratio")
      levels[feature] = column.reduce((sum, value) => sum + value, 0) / count;
    else levels[feature] = column.sort()[quantilePlace(count, statistic === "p75" ? 0.75 : 0.99)]!;
  }
  return levels;
}

/** The forest as it has to be for rows whose levels are `present`, having learnt from rows of `trained`. */
export function tuneForest(
  forest: Forest,
  trained: FeatureLevels,
  present: FeatureLevels,
  statistic: Statistic,
): Forest {
  const isScale = new Uint8Array(forest.features);
  for (const feature of SCALE_FEATURES) isScale[feature] = 1;
  const threshold = forest.threshold.map((at, node) => {
    const feature = forest.feature[node]!;
    if (feature < 0 || !isScale[feature]) return at;
    const [before, now] = [trained[feature]!, present[feature]!];
    if (statistic === "ratio") return before > 0 ? at * (now / before) : at;
    return at + (now - before);
  });
  return { ...forest, threshold };
}
