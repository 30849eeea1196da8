/**
 * Trains the detector that is shipped, on simulated jobs:
 * `node --import tsx eval/holmes/train.ts --out eval/holmes/detector/model.json`
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { forestToJson } from "../maths/forest-json.ts";
import type { DetectorJson } from "./detector/detector.ts";
import { askedRows, balance, FOREST_OPTIONS, trainDetector } from "./detector/train.ts";
import { drawJob, type JobSet } from "./jobs.ts";
import { jobRows, joinRows } from "./rows.ts";

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    jobs: { type: "string", default: "400" },
    "validation-jobs": { type: "string", default: "80" },
  },
});

const rowsOf = (set: JobSet, count: number) =>
  joinRows(Array.from({ length: count }, (_, number) => askedRows(jobRows(drawJob(set, number)))));
const all = rowsOf("train", Number(values.jobs));
const given = balance(all, 3, 1);
const held = rowsOf("validate", Number(values["validation-jobs"]));
const { forest, cut } = trainDetector(given, held);
const model: DetectorJson = { cut, forest: forestToJson(forest) };
const text = `${JSON.stringify(model, null, 2)}\n`;
const abnormal = (labels: Uint8Array): number => labels.reduce((sum, label) => sum + label, 0);
console.log(
  `${all.labels.length} operators (${abnormal(all.labels)} abnormal) → ${given.labels.length} rows; ` +
    `${FOREST_OPTIONS.trees} trees, ${forest.feature.length} nodes, ${(text.length / 1000).toFixed(0)} kB; ` +
    `cut ${cut.toFixed(3)} from ${held.labels.length} operators (${abnormal(held.labels)} abnormal)`,
);
if (values.out) writeFileSync(values.out, text);
