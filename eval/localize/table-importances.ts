/** Which features the trainings' forests decide by: the impurity that splits on each took away, mean over trainings. */
import { importances } from "../maths/forest.ts";
import type { Criterion } from "../maths/forest-split.ts";
import { FEATURES, PAPER_FEATURE_COUNT } from "../holmes/detector/features.ts";
import { trainFor } from "./published-training.ts";
import { layoutsOf, markdown, type TableOptions } from "./table-trials.ts";

const CRITERIA: readonly Criterion[] = ["gini", "entropy"];

export function importancesTable(options: TableOptions): string {
  const columns = CRITERIA.map((criterion) => {
    const sum = new Float64Array(PAPER_FEATURE_COUNT);
    for (const layout of layoutsOf(options))
      importances(trainFor(layout, { criterion }).forest).forEach((share, f) => {
        sum[f]! += share / options.trainings;
      });
    return sum;
  });
  const order = Array.from({ length: PAPER_FEATURE_COUNT }, (_, f) => f).sort(
    (a, b) => columns[1]![b]! - columns[1]![a]!,
  );
  return markdown(
    ["feature", ...CRITERIA],
    order.map((f) => [
      FEATURES[f]!,
      ...columns.map((column) => `${(100 * column[f]!).toFixed(1)} %`),
    ]),
  );
}
