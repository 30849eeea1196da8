/**
 * How well abnormal operators are found in simulated jobs of seeds and layouts that nothing was learnt from:
 * `node --import tsx eval/holmes/detect.ts`. Cuts of all methods are chosen on the validation jobs.
 */
import { parseArgs } from "node:util";
import type { Criterion } from "../maths/forest-split.ts";
import { importances, predictRows } from "../maths/forest.ts";
import { fitKnn, predictKnn } from "../maths/knn.ts";
import { fitSvm, scoreSvm } from "../maths/linear-svm.ts";
import {
  FEATURE_COUNT,
  FEATURES,
  firstColumns,
  PAPER_FEATURE_COUNT,
  Z,
} from "./detector/features.ts";
import {
  askedRows,
  balance,
  bestCut,
  FOREST_OPTIONS,
  scoreOf,
  trainDetector,
  type LabelledRows,
  type Score,
} from "./detector/train.ts";
import { driftTable } from "./drift.ts";
import { drawJob, type JobSet } from "./jobs.ts";
import { jobRows, joinRows } from "./rows.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "400" },
    "held-jobs": { type: "string", default: "80" },
    "test-jobs": { type: "string", default: "96" },
    "drift-jobs": { type: "string", default: "60" },
  },
});
/** Neighbours are sought among this many rows; all of them would take an hour. */
const KNN_ROWS = 4000;

const draw = (set: JobSet, count: number): LabelledRows =>
  joinRows(Array.from({ length: count }, (_, number) => askedRows(jobRows(drawJob(set, number)))));
const paperOnly = (data: LabelledRows): LabelledRows => ({
  features: PAPER_FEATURE_COUNT,
  rows: firstColumns(data.rows, FEATURE_COUNT, PAPER_FEATURE_COUNT),
  labels: data.labels,
});
const percent = (share: number): string => (100 * share).toFixed(1);
const count = (labels: Uint8Array): number => labels.reduce((sum, label) => sum + label, 0);

const given = balance(draw("train", Number(values.jobs)), 3, 1);
const held = draw("validate", Number(values["held-jobs"]));
const testJobs = Array.from({ length: Number(values["test-jobs"]) }, (_, number) =>
  jobRows(drawJob("test", number)),
);
const whole = joinRows(testJobs);
// All methods but the bare 3-sigma are asked about these only. No abnormal operator is below, so counts of hits and
// of what was missed are those of whole logs.
const test = askedRows(whole);
console.log(
  `${testJobs.length} jobs, ${whole.labels.length} operators, ${test.labels.length} of 1 % of their ` +
    `iteration or more, ${count(whole.labels)} abnormal (${count(test.labels)} of those); ` +
    `learnt from ${given.labels.length} rows of ${values.jobs} jobs\n`,
);

console.log("| method | precision | recall | F1 |\n|---|---|---|---|");
const line = (name: string, { precision, recall, f1 }: Score): void =>
  console.log(`| ${name} | ${percent(precision)} | ${percent(recall)} | ${f1.toFixed(3)} |`);

const forests = (["gini", "entropy"] as Criterion[]).map((criterion) => {
  const options = { ...FOREST_OPTIONS, criterion };
  const trained = trainDetector(given, held, options);
  const scores = predictRows(trained.forest, test.rows);
  line(
    `forest, ${criterion}`,
    scoreOf((row) => scores[row]! >= trained.cut, test.labels),
  );
  const paper = trainDetector(paperOnly(given), paperOnly(held), options);
  const paperScores = predictRows(paper.forest, paperOnly(test).rows);
  line(
    `forest, ${criterion}, the paper's features only`,
    scoreOf((row) => paperScores[row]! >= paper.cut, test.labels),
  );
  return { ...trained, scores };
});
line(
  "3-sigma, all operators",
  scoreOf((row) => whole.rows[row * FEATURE_COUNT + Z]! > 3, whole.labels),
);
line(
  "3-sigma",
  scoreOf((row) => test.rows[row * FEATURE_COUNT + Z]! > 3, test.labels),
);
// The label's own rule with the window's median in the twin's place: what a forest has to beat.
const overMedian = FEATURES.indexOf("over q2");
const excessShare = FEATURES.indexOf("excess share");
line(
  "a tenth and 1 % of the iteration above the median",
  scoreOf(
    (row) =>
      test.rows[row * FEATURE_COUNT + overMedian]! > 1.1 &&
      test.rows[row * FEATURE_COUNT + excessShare]! > 0.01,
    test.labels,
  ),
);
{
  const step = Math.max(1, Math.floor(given.labels.length / KNN_ROWS));
  const rows: number[] = [];
  const labels: number[] = [];
  for (let row = 0; row < given.labels.length; row += step) {
    rows.push(...given.rows.subarray(row * FEATURE_COUNT, (row + 1) * FEATURE_COUNT));
    labels.push(given.labels[row]!);
  }
  const knn = fitKnn(Float64Array.from(rows), Uint8Array.from(labels), FEATURE_COUNT, 5);
  const cut = bestCut(predictKnn(knn, held.rows), held.labels);
  const scores = predictKnn(knn, test.rows);
  line(
    `5 nearest of ${labels.length} neighbours`,
    scoreOf((row) => scores[row]! >= cut, test.labels),
  );
}
{
  const svm = fitSvm(given.rows, given.labels, FEATURE_COUNT, {
    lambda: 1e-4,
    steps: 2_000_000,
    seed: 1,
  });
  const cut = bestCut(scoreSvm(svm, held.rows), held.labels);
  const scores = scoreSvm(svm, test.rows);
  line(
    "linear SVM",
    scoreOf((row) => scores[row]! >= cut, test.labels),
  );
}

const { forest, cut, scores } = forests[1]!;
console.log("\n| forest, entropy, by cause | operators | abnormal | precision | recall | F1 |");
console.log("|---|---|---|---|---|---|");
for (const cause of ["gpu-slow", "cpu-stall", "network-slow", "healthy"]) {
  const own = testJobs.filter((job) => job.cause === cause);
  const { rows, labels } = askedRows(joinRows(own));
  const found = predictRows(forest, rows);
  const { precision, recall, f1 } = scoreOf((row) => found[row]! >= cut, labels);
  const accused = found.filter((p) => p >= cut).length;
  console.log(
    cause === "healthy"
      ? `| healthy (${own.length} jobs) | ${labels.length} | 0 | ${accused} accused | | |`
      : `| ${cause} (${own.length} jobs) | ${labels.length} | ${count(labels)} | ${percent(precision)} | ${percent(recall)} | ${f1.toFixed(3)} |`,
  );
}
console.log(`\ncut ${cut.toFixed(3)}; best cut on the test jobs themselves: ${bestF1(scores)}`);

console.log("\n| feature | importance |\n|---|---|");
const shares = importances(forest);
[...FEATURES.keys()]
  .sort((a, b) => shares[b]! - shares[a]!)
  .forEach((f) => console.log(`| ${FEATURES[f]} | ${percent(shares[f]!)} % |`));

if (Number(values["drift-jobs"]) > 0) driftTable(Number(values["drift-jobs"]), { forest, cut });

function bestF1(found: Float64Array): string {
  const best = bestCut(found, test.labels);
  const { f1 } = scoreOf((row) => found[row]! >= best, test.labels);
  return `${best.toFixed(3)}, F1 ${f1.toFixed(3)}`;
}
