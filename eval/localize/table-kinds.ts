/** Holmes figure 15(b) at one size, by kind of fault: the forest, the 3-sigma rule in its place, and ours. */
import { KINDS } from "./cases.ts";
import { published } from "./published.ts";
import { Hits, layoutsOf, markdown, Shares, trials, type TableOptions } from "./table-trials.ts";

/** From here on δ = 1.1 can see a lasting fault. */
const SEEN = 0.12;

export function kindsTable(options: TableOptions): string {
  const names = [...KINDS, "all", `all that add ${100 * SEEN} % or more`];
  const rows = new Map(
    names.map((name) => [name, { forest: new Hits(), sigma: new Hits(), ours: new Shares() }]),
  );
  for (const { one, job, slowdown, byForest, bySigma, isOursRight } of trials(
    layoutsOf(options),
    options.cases,
  )) {
    const byF = published(job, byForest, { seed: one.seed }).devices;
    const byS = published(job, bySigma, { seed: one.seed }).devices;
    for (const name of [one.kind, "all", ...(slowdown >= SEEN ? [names.at(-1)!] : [])]) {
      const { forest, sigma, ours } = rows.get(name)!;
      forest.add(one, byF);
      sigma.add(one, byS);
      ours.add(isOursRight);
    }
  }
  return markdown(
    ["fault", "forest, first", "first two", "3-sigma, first", "first two", "ours"],
    [...rows].map(([name, { forest, sigma, ours }]) => [
      name,
      ...forest.cells,
      ...sigma.cells,
      ours.cell,
    ]),
  );
}
