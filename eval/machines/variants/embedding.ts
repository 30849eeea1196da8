/**
 * From metrics to points in all ways of the paper's comparisons (§6.1, §6.3): they end in the same rows of numbers, one
 * column a machine.
 */
import { VaePass } from "../../../src/maths/lstm-vae-gradient.ts";
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
    embed(tick, points) {
      const { dimensions } = this;
      const count = points.length / dimensions;
      let first = 0;
      for (const embedder of embedders) {
        const own = embedder.dimensions;
        const part = new Float32Array(own * count);
        embedder.embed(tick, part);
        for (let i = 0; i < count; i++)
          points.set(part.subarray(i * own, (i + 1) * own), i * dimensions + first);
        first += own;
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
  const { shape } = vae;
  const { window } = shape;
  const stride = machines.length;
  const series = new Float32Array(axis.ticks * shape.inputs * stride);
  inputs.forEach((grid, input) => {
    if (grid) normaliseInto(series, stride, [inputs.length, input], grid, machines, axis);
  });
  const pass = new VaePass(vae);
  const x = new Float64Array(window * shape.inputs);
  const moments = new Float32Array(MOMENTS * stride);
  const own = Float64Array.from({ length: MOMENTS });
  return {
    dimensions: dimensionsOf(shape, embedding),
    window,
    embed(tick, points) {
      const start = tick * shape.inputs * stride;
      if (embedding === "moments") momentsInto(moments, series, start, window, stride, stride);
      for (let i = 0; i < stride; i++) {
        for (let k = 0; k < x.length; k++) x[k] = series[start + k * stride + i]!;
        for (let k = 0; k < MOMENTS; k++) own[k] = moments[k * stride + i]!;
        if (embedding === "latent") pass.encode(x);
        else if (embedding === "reconstruction") pass.forward(x, null);
        const found = {
          latent: pass.mean,
          reconstruction: pass.reconstruction,
          raw: x,
          moments: own,
        };
        points.set(found[embedding], i * found[embedding].length);
      }
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
