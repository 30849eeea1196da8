/** Holmes figure 26 and appendix D: accumulation with and without the prior of Table 1, with and without decay. */
import { TABLE_1 } from "./attribution/accumulate.ts";
import { KINDS } from "./cases.ts";
import { published } from "./published.ts";
import { Hits, layoutsOf, markdown, trials, type TableOptions } from "./table-trials.ts";

const WAYS = [
  { name: "prior, decay", accumulate: { prior: TABLE_1, decay: true } },
  { name: "prior, no decay", accumulate: { prior: TABLE_1, decay: false } },
  { name: "plain sum, decay", accumulate: { prior: null, decay: true } },
  { name: "plain sum, no decay", accumulate: { prior: null, decay: false } },
  { name: "prior of weight 10, decay", accumulate: { prior: TABLE_1, decay: true, alpha: 10 } },
];

/** Ours accumulates in a posterior of its own, without these choices, so it has no column. */
export function priorTable(options: TableOptions): string {
  const rows = WAYS.map((way) => ({
    ...way,
    all: new Hits(),
    byKind: new Map(KINDS.map((kind) => [kind, new Hits()])),
  }));
  for (const { one, job, byForest } of trials(layoutsOf(options), options.cases))
    for (const { accumulate, all, byKind } of rows) {
      const { devices } = published(job, byForest, { seed: one.seed, accumulate });
      all.add(one, devices);
      byKind.get(one.kind)!.add(one, devices);
    }
  return markdown(
    ["accumulation", "first", "first two", ...KINDS.map((kind) => `${kind}, first two`)],
    rows.map(({ name, all, byKind }) => [
      name,
      ...all.cells,
      ...KINDS.map((kind) => byKind.get(kind)!.cells[1]),
    ]),
  );
}
