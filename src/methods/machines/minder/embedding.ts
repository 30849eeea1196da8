/** From a metric to points: what the distances between machines are taken of, window by window. */
import { VaePass } from "../../../maths/lstm-vae-gradient.ts";
import { MINDER_SHAPE } from "../../../maths/lstm-vae.ts";
import type { MetricGrid } from "../../../model/fleet.ts";
import { modelOf, vaeOf, type MinderModels } from "./model-file.ts";
import { normalised, taskLimits } from "./preprocess.ts";

export const WINDOW = MINDER_SHAPE.window;

export interface Embedder {
  readonly dimensions: number;
  /** Samples of a window. */
  readonly window: number;
  /** Coordinate d of machine i goes to i · dimensions + d. */
  embed(tick: number, points: Float32Array): void;
}

/** One metric's windows as its model's encoder sees them: the mean of the latent variable. */
export function metricEmbedder(
  grid: MetricGrid,
  machines: Int32Array,
  models: MinderModels,
): Embedder {
  const vae = vaeOf(modelOf(models, grid.metric));
  const pass = new VaePass(vae);
  const { ticks } = grid;
  const series = normalised(grid, machines, taskLimits(grid, machines));
  return {
    dimensions: vae.shape.latent,
    window: WINDOW,
    embed(tick, points) {
      for (let i = 0; i < machines.length; i++) {
        const from = i * ticks + tick;
        pass.encode(series.subarray(from, from + WINDOW));
        points.set(pass.mean, i * pass.mean.length);
      }
    },
  };
}
