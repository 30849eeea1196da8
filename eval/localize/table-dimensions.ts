/** Holmes figure 15(c): accuracy by the number of parallelism dimensions. */
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { published } from "./published.ts";
import { ITERATIONS } from "./table-cases.ts";
import { Hits, markdown, Shares, trials, type TableOptions } from "./table-trials.ts";

const LAYOUTS: readonly (readonly [string, Partial<ClusterSpec>])[] = [
  ["2D: dp, tp 8", { tp: 8, pp: 1 }],
  ["3D: dp, tp 8, pp 4", { tp: 8, pp: 4 }],
  ["4D: dp, tp 8, pp 4, ep 4", { tp: 8, pp: 4, ep: 4 }],
  ["5D: dp, tp 4, pp 4, cp 2, ep 4", { tp: 4, pp: 4, cp: 2, ep: 4 }],
];

export function dimensionsTable({ gpus, cases }: TableOptions): string {
  const rows = LAYOUTS.map(([name, layout], n) => {
    const [hits, ours] = [new Hits(), new Shares()];
    const { tp = 1, pp = 1, cp = 1 } = layout;
    const spec = completeSpec({
      ...layout,
      gpus,
      dp: gpus / (tp * pp * cp),
      microBatches: 8,
      layersPerStage: 2,
      hidden: 8192,
      iterations: ITERATIONS,
      seed: 31_000 + n,
    });
    for (const { one, job, byForest, isOursRight } of trials([spec], cases)) {
      hits.add(one, published(job, byForest, { seed: one.seed }).devices);
      ours.add(isOursRight);
    }
    return [name, ...hits.cells, ours.cell];
  });
  return markdown(["layout", "first", "first two", "ours"], rows);
}
