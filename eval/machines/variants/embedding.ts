/**
 * From metrics to points in all ways of the paper's comparisons (§6.1, §6.3): they end in the same rows of numbers, one
 * column a machine.
 */
import { assert } from "../../../src/base/errors.ts";
import { VaeKernel } from "../../../src/maths/lstm-vae-kernel.ts";
import type { VaeShape } from "../../../src/maths/lstm-vae.ts";
import type { Embedder } from "../../../src/methods/machines/minder/embedding.ts";
import {
  modelOf,
  vaeOf,
  type MetricModel,
  type MinderModels,
} from "../../../src/methods/machines/minder/model-file.ts";
import { fillGaps, taskLimits } from "../../../src/methods/machines/minder/preprocess.ts";
import type { MetricGrid } from "../../../src/model/fleet.ts";
import { INTEGRATED } from "./integrated-model.ts";
import { MOMENTS, momentsInto } from "./moments.ts";
import type { Embedding } from "./options.ts";

/** The times that windows are cut from. */
export interface Axis {
  readonly startS: number;
  readonly stepS: number;
  readonly ticks: number;
}

/** The coarsest of the grids' times: what metrics share where they are taken together. */
export function commonAxis(grids: readonly MetricGrid[]): Axis {
  const stepS = Math.max(...grids.map((grid) => grid.stepS));
  const startS = Math.max(...grids.map((grid) => grid.startS));
  const endS = Math.min(...grids.map((grid) => grid.startS + grid.stepS * (grid.ticks - 1)));
  return { startS, stepS, ticks: Math.max(0, Math.floor((endS - startS) / stepS + 1e-6) + 1) };
}

/** One metric's windows, through its model or as they are. */
export function variantEmbedder(
  grid: MetricGrid,
  machines: Int32Array,
  axis: Axis,
  models: MinderModels,
  embedding: Embedding,
): Embedder {
  const model = modelOf(models, grid.metric);
  return kernelEmbedder([grid], machines, axis, model, embedding);
}

/** All metrics through one model (INT). A metric that the task has not got is 0 for every machine. */
export function integratedEmbedder(
  grids: readonly MetricGrid[],
  machines: Int32Array,
  axis: Axis,
  embedding: Embedding,
): Embedder {
  const inputs = INTEGRATED.inputs.map((metric) => grids.find((grid) => grid.metric === metric));
  return kernelEmbedder(inputs, machines, axis, INTEGRATED, embedding);
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

function kernelEmbedder(
  inputs: readonly (MetricGrid | undefined)[],
  machines: Int32Array,
  axis: Axis,
  model: MetricModel,
  embedding: Embedding,
): Embedder {
  const vae = vaeOf(model);
  const kernel = new VaeKernel(vae.shape, machines.length, axis.ticks);
  kernel.load(vae);
  const { shape, series, stride: own } = kernel;
  inputs.forEach((grid, input) => {
    if (grid) normaliseInto(series, own, [inputs.length, input], grid, machines, axis);
  });
  const { window } = shape;
  return {
    dimensions: dimensionsOf(shape, embedding),
    window,
    embed(tick, points, stride, from) {
      assert(stride === own, "rows of the same length");
      const start = tick * shape.inputs * own;
      if (embedding === "raw")
        return points.set(series.subarray(start, start + window * shape.inputs * own), from);
      if (embedding === "moments") {
        const to = points.subarray(from, from + MOMENTS * stride);
        return momentsInto(to, series, start, window, stride, machines.length);
      }
      kernel.run(tick, embedding === "reconstruction");
      points.set(embedding === "latent" ? kernel.mean : kernel.window, from);
    },
  };
}

function dimensionsOf({ window, inputs, latent }: VaeShape, embedding: Embedding): number {
  if (embedding === "moments") return MOMENTS;
  return embedding === "latent" ? latent : window * inputs;
}

/** Machine i of `machines` at tick t of the axis goes to (t · inputs + input) · stride + i. */
function normaliseInto(
  to: Float32Array,
  stride: number,
  [inputs, input]: readonly [number, number],
  grid: MetricGrid,
  machines: Int32Array,
  axis: Axis,
): void {
  const [low, high] = taskLimits(grid, machines);
  const row = new Float32Array(grid.ticks);
  const scale = high > low ? 1 / (high - low) : 0;
  const source = Int32Array.from({ length: axis.ticks }, (_, tick) => {
    const seconds = axis.startS + tick * axis.stepS - grid.startS;
    return Math.min(grid.ticks - 1, Math.max(0, Math.round(seconds / grid.stepS)));
  });
  machines.forEach((machine, i) => {
    fillGaps(grid, machine, row);
    for (let tick = 0; tick < axis.ticks; tick++) {
      const value = (row[source[tick]!]! - low) * scale;
      to[(tick * inputs + input) * stride + i] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
  });
}
