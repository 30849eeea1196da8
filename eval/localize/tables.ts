/**
 * The paper's tables and figures (Holmes §5.1, appendix E) with its method as published and ours, on simulated jobs:
 * `node --max-old-space-size=8192 --import tsx eval/localize/tables.ts [--quick] [--only delta,pivots,…] [--gpus N]
 * [--cases N]`. Prints Markdown. Cells are right/all, per cent and Wilson's interval at 95 %.
 */
import { parseArgs } from "node:util";
import { UserError } from "../../src/base/errors.ts";
import { shippedDetector } from "../holmes/detector/shipped.ts";
import { driftMarkdown } from "../holmes/drift.ts";
import { deltaTable } from "./table-delta.ts";
import { dimensionsTable } from "./table-dimensions.ts";
import { importancesTable } from "./table-importances.ts";
import { kindsTable } from "./table-kinds.ts";
import { pivotsTable } from "./table-pivots.ts";
import { priorTable } from "./table-prior.ts";
import { shapesTable } from "./table-shapes.ts";
import type { TableOptions } from "./table-trials.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    gpus: { type: "string" },
    cases: { type: "string" },
  },
});
const { quick } = values;
const options: TableOptions = {
  gpus: Number(values.gpus ?? (quick ? 512 : 2048)),
  cases: Number(values.cases ?? (quick ? 10 : 60)),
  trainings: quick ? 2 : 6,
};

/** These tables run all cases several times over; a quarter of an hour is the limit. */
function halved(given: TableOptions): TableOptions {
  return { ...given, cases: Math.ceil(given.cases / 2) };
}

const TABLES: Readonly<Record<string, readonly [string, (given: TableOptions) => string]>> = {
  kinds: ["Kinds of fault (figure 15b)", kindsTable],
  delta: ["δ (figure 15a), the three kinds of irregularity mixed", deltaTable],
  pivots: ["Number of pivots (figure 14c)", pivotsTable],
  dimensions: [
    "Parallelism dimensions (figure 15c), half as many cases a layout",
    (given) => dimensionsTable(halved(given)),
  ],
  prior: ["Prior and decay (figure 26, appendix D)", priorTable],
  shapes: [
    "Kinds of irregularity (figure 24), half as many cases a kind",
    (given) => shapesTable(halved(given)),
  ],
  drift: [
    "Drift, F1 of the detector (figures 14b and 25)",
    () => driftMarkdown(quick ? 12 : 60, shippedDetector()),
  ],
  importances: ["Importances of the features, a forest a training", importancesTable],
};

for (const name of values.only?.split(",") ?? Object.keys(TABLES)) {
  const table = TABLES[name];
  if (!table) {
    const hint = `allowed: ${Object.keys(TABLES).join(", ")}`;
    throw new UserError(`--only ${name}: there is no such table`, hint, 2);
  }
  const [title, make] = table;
  const started = performance.now();
  const text = make(options);
  console.log(
    `\n## ${title}\n\n${options.gpus.toLocaleString("en")} GPUs, ${options.cases} cases, ${options.trainings} trainings; ` +
      `${((performance.now() - started) / 1000).toFixed(0)} s\n\n${text}`,
  );
}
