/**
 * Holmes figure 14(c): accuracy in single iterations by the number of pivots, the end that began first deciding; and
 * over iterations. An iteration counts as right where the cause agrees and the ranks named have some of the device's
 * ("the GPU or GPU sets where the root cause occurs"). Iterations before the fault are left out: nobody is right there.
 */
import type { Root } from "./published-search.ts";
import { published } from "./published.ts";
import type { TableCase } from "./table-cases.ts";
import { Hits, layoutsOf, markdown, Shares, trials, type TableOptions } from "./table-trials.ts";

const PIVOTS = [1, 2, 3, 4, 5, 6];

export function pivotsTable(options: TableOptions): string {
  const rows = PIVOTS.map((pivots) => ({
    pivots,
    iterations: new Shares(),
    all: new Hits(),
    earliest: new Hits(),
  }));
  const ours = new Shares();
  for (const { one, job, byForest, isOursRight } of trials(layoutsOf(options), options.cases)) {
    ours.add(isOursRight);
    for (const { pivots, iterations, all, earliest } of rows) {
      const found = published(job, byForest, { seed: one.seed, pivots });
      found.first.forEach((root, i) => {
        if (found.irregular[i]! >= one.spec.faults[0]!.from) iterations.add(touches(one, root));
      });
      all.add(one, found.devices);
      const { devices } = published(job, byForest, { seed: one.seed, pivots, counted: "earliest" });
      earliest.add(one, devices);
    }
  }
  return markdown(
    [
      "pivots",
      "single iterations",
      "first, all ends",
      "first two, all ends",
      "first, earliest end",
      "first two, earliest end",
      "ours (own pivots)",
    ],
    rows.map(({ pivots, iterations, all, earliest }) => [
      String(pivots),
      iterations.cell,
      ...all.cells,
      ...earliest.cells,
      ours.cell,
    ]),
  );
}

function touches({ cause, ranks }: TableCase, root: Root | null): boolean {
  return root?.cause === cause && root.ranks.some((rank) => ranks.includes(rank));
}
