/** Holmes figure 15(a): accuracy by δ. Ours is told by the iteration tracker and has no δ. */
import { irregularIterations, published } from "./published.ts";
import { SHAPES } from "./table-cases.ts";
import { Hits, layoutsOf, markdown, Shares, trials, type TableOptions } from "./table-trials.ts";

const DELTAS = [1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14, 1.16, 1.2];

export function deltaTable(options: TableOptions): string {
  const rows = DELTAS.map((delta) => ({
    delta,
    hits: new Hits(),
    none: new Shares(),
    irregular: [] as number[],
  }));
  const ours = new Shares();
  for (const { one, job, byForest, isOursRight } of trials(
    layoutsOf(options),
    options.cases,
    SHAPES,
  )) {
    ours.add(isOursRight);
    for (const { delta, hits, none, irregular } of rows) {
      const count = irregularIterations(job.iterationMs, delta).length;
      irregular.push(count);
      none.add(count === 0);
      hits.add(one, published(job, byForest, { seed: one.seed, delta }).devices);
    }
  }
  const mean = (values: readonly number[]): string =>
    (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(1);
  return markdown(
    ["δ", "first", "first two", "no irregular iteration", "irregular of 100, mean", "ours (no δ)"],
    rows.map(({ delta, hits, none, irregular }) => [
      delta.toFixed(2),
      ...hits.cells,
      none.cell,
      mean(irregular),
      ours.cell,
    ]),
  );
}
