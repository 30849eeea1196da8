/** From a metric to points: what the distances between machines are taken of, window by window. */
import { assert } from "../../../base/errors.ts";
import { VaeKernel } from "../../../maths/lstm-vae-kernel.ts";
import { MINDER_SHAPE } from "../../../maths/lstm-vae.ts";
import type { MetricGrid } from "../../../model/fleet.ts";
import { modelOf, vaeOf, type MinderModels } from "./model-file.ts";
import { normaliseInto, taskLimits } from "./preprocess.ts";

export const WINDOW = MINDER_SHAPE.window;

export interface Embedder {
  readonly dimensions: number;
  /** Samples of a window. */
  readonly window: number;
  /** Coordinate d of machine i goes to from + d · stride + i. */
  embed(tick: number, points: Float32Array, stride: number, from: number): void;
}

/** One metric's windows as its model's encoder sees them: the mean of the latent variable. */
export function metricEmbedder(
  grid: MetricGrid,
  machines: Int32Array,
  models: MinderModels,
): Embedder {
  const vae = vaeOf(modelOf(models, grid.metric));
  const kernel = new VaeKernel(vae.shape, machines.length, grid.ticks);
  kernel.load(vae);
  normaliseInto(kernel.series, kernel.stride, grid, machines, taskLimits(grid, machines));
  return {
    dimensions: vae.shape.latent,
    window: WINDOW,
    embed(tick, points, stride, from) {
      // Both fill machines up to vectors of four: their rows lie equally far apart.
      assert(stride === kernel.stride, "rows of the same length");
      kernel.run(tick, false);
      points.set(kernel.mean, from);
    },
  };
}
