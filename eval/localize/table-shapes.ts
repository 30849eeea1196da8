/** Holmes figure 24: the three kinds of irregularity (§3.1). */
import { published } from "./published.ts";
import { SHAPES } from "./table-cases.ts";
import { Hits, layoutsOf, markdown, Shares, trials, type TableOptions } from "./table-trials.ts";

const PAPER = { spike: "90.7 %", fluctuation: "93.0 %", steady: "93.2 %" };
const NAMES = { spike: "spike", fluctuation: "fluctuation", steady: "persistent degradation" };

export function shapesTable(options: TableOptions): string {
  const rows = SHAPES.map((shape) => {
    const [hits, ours] = [new Hits(), new Shares()];
    for (const { one, job, byForest, isOursRight } of trials(layoutsOf(options), options.cases, [
      shape,
    ])) {
      hits.add(one, published(job, byForest, { seed: one.seed }).devices);
      ours.add(isOursRight);
    }
    return [NAMES[shape], ...hits.cells, PAPER[shape], ours.cell];
  });
  return markdown(["irregularity", "first", "first two", "paper, its own jobs", "ours"], rows);
}
