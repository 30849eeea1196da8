/**
 * Distribution drift (Holmes §4.2.2, figure 14b, appendix E): a forest a job, as in the paper, on the paper's
 * features; then everything takes some per cent longer.
 */
import { predictRows } from "../maths/forest.ts";
import { featureLevels, tuneForest, type Statistic } from "./detector/auto-tune.ts";
import {
  FEATURE_COUNT,
  firstColumns,
  PAPER_FEATURE_COUNT,
  SCALE_FEATURES,
} from "./detector/features.ts";
import {
  askedRows,
  balance,
  scoreOf,
  trainDetector,
  type LabelledRows,
  type Trained,
} from "./detector/train.ts";
import { drawSimilarJob, type JobSet } from "./jobs.ts";
import { jobRows, joinRows, type JobRows } from "./rows.ts";

const LAYOUTS = [0, 4, 7];
const DRIFTS = [0, 0.02, 0.04, 0.06, 0.08, 0.1];
const STATISTICS: readonly Statistic[] = ["mean", "p75", "p99", "ratio"];

export function driftTable(jobs: number, shipped: Trained): void {
  console.log(`\n${driftMarkdown(jobs, shipped)}`);
}

export function driftMarkdown(jobs: number, shipped: Trained): string {
  const columns = ["not tuned", ...STATISTICS, "shipped forest, not tuned"];
  const sums = DRIFTS.map(() => new Float64Array(columns.length));
  for (const layout of LAYOUTS) {
    const draw = (set: JobSet, count: number) =>
      Array.from({ length: count }, (_, number) => jobRows(drawSimilarJob(set, layout, number)));
    const learning = draw("train", jobs);
    const { forest, cut } = trainDetector(
      balance(asked(learning), 3, 1),
      asked(draw("validate", Math.ceil(jobs / 3))),
    );
    const testing = draw("test", Math.ceil(jobs / 2));
    const whole = askedRows(joinRows(testing));
    DRIFTS.forEach((drift, d) => {
      const test = paperOnly(drifted(whole, drift));
      const found = [
        predictRows(forest, test.rows),
        ...STATISTICS.map((statistic) => {
          const trained = levelsOf(regular(learning), statistic);
          const present = levelsOf(drifted(regular(testing), drift), statistic);
          return predictRows(tuneForest(forest, trained, present, statistic), test.rows);
        }),
      ];
      found.forEach((scores, c) => {
        sums[d]![c]! += scoreOf((row) => scores[row]! >= cut, test.labels).f1;
      });
      const general = predictRows(shipped.forest, drifted(whole, drift).rows);
      sums[d]![columns.length - 1]! += scoreOf(
        (row) => general[row]! >= shipped.cut,
        test.labels,
      ).f1;
    });
  }
  const head = `| drift | ${columns.join(" | ")} |\n|${"---|".repeat(columns.length + 1)}`;
  const rows = DRIFTS.map((drift, d) => {
    const cells = Array.from(sums[d]!, (sum) => (sum / LAYOUTS.length).toFixed(3));
    return `| +${Math.round(100 * drift)} % | ${cells.join(" | ")} |`;
  });
  return [
    `mean F1 over ${LAYOUTS.length} layouts, a forest of ${jobs} jobs each\n`,
    head,
    ...rows,
  ].join("\n");
}

const asked = (jobs: readonly JobRows[]): LabelledRows => paperOnly(askedRows(joinRows(jobs)));

/**
 * What levels are taken from: iterations of jobs in which nothing is wrong. Irregular iterations are few and differ
 * from sample to sample by more than any drift; with them in, tuning moved thresholds without a drift.
 */
const regular = (jobs: readonly JobRows[]): LabelledRows =>
  joinRows(jobs.filter(({ cause }) => cause === "healthy"));

const levelsOf = (data: LabelledRows, statistic: Statistic): Float64Array =>
  featureLevels(paperOnly(data).rows, PAPER_FEATURE_COUNT, statistic);

function paperOnly(data: LabelledRows): LabelledRows {
  const rows = firstColumns(data.rows, FEATURE_COUNT, PAPER_FEATURE_COUNT);
  return { features: PAPER_FEATURE_COUNT, rows, labels: data.labels };
}

/** Longer by the same share throughout the window: what has a unit changes, quotients and z-scores do not. */
function drifted(data: LabelledRows, drift: number): LabelledRows {
  const rows = data.rows.slice();
  for (let from = 0; from < rows.length; from += data.features)
    for (const feature of SCALE_FEATURES) rows[from + feature]! *= 1 + drift;
  return { ...data, rows };
}
