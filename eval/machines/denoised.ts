/** A fleet as Minder's models give it back: what our detector would see behind a VAE. */
import { WINDOW } from "../../src/methods/machines/minder/embedding.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import { machinesIn, taskLimits } from "../../src/methods/machines/minder/preprocess.ts";
import type { Fleet, MetricGrid } from "../../src/model/fleet.ts";
import { catalogMetric } from "../../src/model/metric-catalog.ts";
import { variantEmbedder } from "./variants/embedding.ts";

/** States are switches: there is no noise to take away. */
export function denoised(fleet: Fleet): Fleet {
  const grids = fleet.grids.map((grid) => {
    if (catalogMetric(grid.metric)?.group === "state") return grid;
    const mean = reconstruct(fleet, grid, grid.mean);
    const of = (values: Float32Array): Float32Array =>
      values === grid.mean ? mean : reconstruct(fleet, grid, values);
    return { ...grid, mean, low: of(grid.low), high: of(grid.high) };
  });
  return { ...fleet, grids };
}

function reconstruct(fleet: Fleet, grid: MetricGrid, values: Float32Array): Float32Array {
  const { ticks } = grid;
  const given = { ...grid, mean: values };
  const machines = machinesIn(fleet, [given]);
  if (machines.length === 0 || ticks < WINDOW) return values;
  const [low, high] = taskLimits(given, machines);
  const embedder = variantEmbedder(given, machines, given, shippedModels(), "reconstruction");
  const stride = Math.ceil(machines.length / 4) * 4;
  const points = new Float32Array(embedder.dimensions * stride);
  const to = values.slice();
  for (let next = 0; next < ticks; next += WINDOW) {
    const tick = Math.min(next, ticks - WINDOW);
    embedder.embed(tick, points, stride, 0);
    machines.forEach((machine, i) => {
      for (let s = 0; s < WINDOW; s++) {
        const cell = machine * ticks + tick + s;
        // What was not there stays so: gaps are evidence.
        if (values[cell] === values[cell]) to[cell] = low + points[s * stride + i]! * (high - low);
      }
    });
  }
  return to;
}
