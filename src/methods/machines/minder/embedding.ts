/**
 * From metrics to points: what the distances between machines are taken of, window by window. All ways of the paper's
 * comparisons (§6.1, §6.3) end in the same rows of numbers, one column a machine.
 */
import { assert } from "../../../base/errors.ts";
import { VaeKernel } from "../../../maths/lstm-vae-kernel.ts";
import { MINDER_SHAPE, type VaeShape } from "../../../maths/lstm-vae.ts";
import type { MetricGrid } from "../../../model/fleet.ts";
import { catalogMetric } from "../../../model/metric-catalog.ts";
import { modelOf, vaeOf, type MetricModel, type MinderModels } from "./model-file.ts";
import { MOMENTS, momentsInto } from "./moments.ts";
import type { Embedding, MinderOptions } from "./options.ts";
import { normaliseInto, taskLimits, type Axis, type Limits } from "./preprocess.ts";

export interface Embedder {
  readonly dimensions: number;
  /** Samples of a window. */
  readonly window: number;
  /** Coordinate d of machine i goes to from + d · stride + i. */
  embed(tick: number, points: Float32Array, stride: number, from: number): void;
}

export function limitsOf(
  grid: MetricGrid,
  machines: Int32Array,
  model: MetricModel,
  { limits }: Pick<MinderOptions, "limits">,
): Limits {
  if (limits === "model") return model.limits;
  const bounds = catalogMetric(grid.metric)?.bounds;
  return limits === "catalog" && bounds ? bounds : taskLimits(grid, machines);
}

/** One metric's windows, through its model or as they are. */
export function metricEmbedder(
  grid: MetricGrid,
  machines: Int32Array,
  axis: Axis,
  models: MinderModels,
  options: MinderOptions,
): Embedder {
  const model = modelOf(models, grid.metric);
  const vae = vaeOf(model);
  const kernel = new VaeKernel(vae.shape, machines.length, axis.ticks);
  kernel.load(vae);
  const limits = limitsOf(grid, machines, model, options);
  normaliseInto(kernel.series, kernel.stride, [1, 0], grid, machines, axis, limits);
  return kernelEmbedder(kernel, options.embedding, machines.length);
}

/** All metrics through one model (INT). A metric that the task has not got is 0 for every machine. */
export function integratedEmbedder(
  grids: readonly MetricGrid[],
  machines: Int32Array,
  axis: Axis,
  model: MetricModel & { readonly inputs: readonly string[] },
  options: MinderOptions,
): Embedder {
  const vae = vaeOf(model);
  const kernel = new VaeKernel(vae.shape, machines.length, axis.ticks);
  kernel.load(vae);
  const inputs = model.inputs.length;
  model.inputs.forEach((metric, input) => {
    const grid = grids.find((grid) => grid.metric === metric);
    if (!grid) return;
    const limits = taskLimits(grid, machines);
    normaliseInto(kernel.series, kernel.stride, [inputs, input], grid, machines, axis, limits);
  });
  return kernelEmbedder(kernel, options.embedding, machines.length);
}

/** Side by side (CON). */
export function concatenated(embedders: readonly Embedder[]): Embedder {
  return {
    dimensions: embedders.reduce((sum, { dimensions }) => sum + dimensions, 0),
    window: Math.max(...embedders.map(({ window }) => window)),
    embed(tick, points, stride, from) {
      let next = from;
      for (const embedder of embedders) {
        embedder.embed(tick, points, stride, next);
        next += embedder.dimensions * stride;
      }
    },
  };
}

function kernelEmbedder(kernel: VaeKernel, embedding: Embedding, machines: number): Embedder {
  const { shape, series, stride: own } = kernel;
  const { window } = shape;
  // Both fill machines up to vectors of four: their rows lie equally far apart.
  return {
    dimensions: dimensionsOf(shape, embedding),
    window,
    embed(tick, points, stride, from) {
      assert(stride === own, "rows of the same length");
      let next = from;
      const copy = (rows: Float32Array): void => {
        points.set(rows, next);
        next += rows.length;
      };
      const start = tick * shape.inputs * own;
      if (embedding === "raw")
        return copy(series.subarray(start, start + window * shape.inputs * own));
      if (embedding === "moments") {
        const to = points.subarray(from, from + MOMENTS * stride);
        return momentsInto(to, series, start, window, stride, machines);
      }
      kernel.run(tick, embedding !== "latent");
      if (embedding !== "reconstruction") copy(kernel.mean);
      if (embedding !== "latent") copy(kernel.window);
    },
  };
}

function dimensionsOf({ window, inputs, latent }: VaeShape, embedding: Embedding): number {
  if (embedding === "moments") return MOMENTS;
  if (embedding === "latent") return latent;
  return window * inputs + (embedding === "both" ? latent : 0);
}

export const WINDOW = MINDER_SHAPE.window;
