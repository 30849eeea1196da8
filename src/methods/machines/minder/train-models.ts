/**
 * Trains Minder's models from tasks in which nothing was wrong (§4.2): one for each metric, and one over
 * windows of all of them for metrics that have none. Windows are drawn at random, the same number from every task, so
 * that a large one does not decide what is normal.
 */
import { randomInt, seeded, type Random } from "../../../base/random.ts";
import {
  DEFAULT_DIVERGENCE,
  DEFAULT_TRAINING,
  reconstructionError,
  trainVae,
} from "../../../maths/lstm-vae-train.ts";
import { MINDER_SHAPE, vaeFromJson, vaeToJson } from "../../../maths/lstm-vae.ts";
import type { Fleet, MetricGrid } from "../../../model/fleet.ts";
import { WINDOW } from "./embedding.ts";
import type { MetricModel, MinderModels } from "./model-file.ts";
import { machinesIn, normaliseInto, taskLimits, type Limits } from "./preprocess.ts";

export interface TrainingOptions {
  /** null: all that the tasks have. */
  readonly metrics: readonly string[] | null;
  /** Drawn from each task for each metric. */
  readonly windowsPerTask: number;
  /** Batches of the training of each model. */
  readonly batches: number;
  readonly seed: number;
  /** What is being done, and the share of it that is. */
  readonly onProgress: (what: string, share: number) => void;
}

export const DEFAULT_MODEL_TRAINING: TrainingOptions = {
  metrics: null,
  windowsPerTask: 500,
  batches: DEFAULT_TRAINING.batches,
  seed: 1,
  onProgress: () => {},
};

/** Windows of one kind, one behind the other. */
interface Sampled {
  readonly values: number[];
  low: number;
  high: number;
}

export function trainModels(
  tasks: Iterable<Fleet>,
  chosen: Partial<TrainingOptions> = {},
): MinderModels {
  const options = { ...DEFAULT_MODEL_TRAINING, ...chosen };
  const { windowsPerTask, onProgress } = options;
  const random = seeded(options.seed);
  const byMetric = new Map<string, Sampled>();
  for (const fleet of tasks) {
    onProgress("reading tasks", 0);
    for (const grid of fleet.grids) {
      if (options.metrics && !options.metrics.includes(grid.metric)) continue;
      const sampled = byMetric.get(grid.metric) ?? { values: [], low: Infinity, high: -Infinity };
      byMetric.set(grid.metric, sampled);
      sampleWindows(fleet, grid, windowsPerTask, random, sampled);
    }
  }
  const names = [...byMetric.keys()].filter((name) => byMetric.get(name)!.values.length > 0).sort();
  const metrics: Record<string, MetricModel> = {};
  const train = (what: string, sampled: Sampled): MetricModel =>
    trainOne(sampled, options, (share) => onProgress(what, share));
  for (const name of names) metrics[name] = train(name, byMetric.get(name)!);
  const mixed = mix(names.map((name) => byMetric.get(name)!));
  return { version: 1, metrics, fallback: train("any other metric", mixed) };
}

/** Draws windows of machines that have samples; nothing where the task is too short. */
function sampleWindows(
  fleet: Fleet,
  grid: MetricGrid,
  count: number,
  random: Random,
  to: Sampled,
): void {
  const machines = machinesIn(fleet, [grid]);
  if (machines.length === 0 || grid.ticks < WINDOW) return;
  const stride = machines.length;
  const series = new Float32Array(grid.ticks * stride);
  const limits = taskLimits(grid, machines);
  to.low = Math.min(to.low, limits[0]);
  to.high = Math.max(to.high, limits[1]);
  normaliseInto(series, stride, grid, machines, limits);
  for (let w = 0; w < count; w++) {
    const machine = randomInt(random, machines.length);
    const tick = randomInt(random, grid.ticks - WINDOW + 1);
    for (let i = 0; i < WINDOW; i++) to.values.push(series[(tick + i) * stride + machine]!);
  }
}

/** At most as many windows as one metric has, in turn from each. */
function mix(all: readonly Sampled[]): Sampled {
  const values: number[] = [];
  const most = Math.max(0, ...all.map((sampled) => sampled.values.length / WINDOW));
  for (let w = 0; w * all.length < most; w++)
    for (const sampled of all) values.push(...sampled.values.slice(w * WINDOW, (w + 1) * WINDOW));
  return { values, low: 0, high: 1 };
}

/**
 * Scales every fourth window by a random factor below 1. Minder's training data are mostly, not only, normal (§4.2): a
 * model that never saw a low level gives it back as a high one, and the machine that fell is no outlier any more.
 */
function withLowLevels(windows: Float32Array, random: Random): Float32Array {
  for (let from = 0; from < windows.length; from += 4 * WINDOW) {
    const factor = random();
    for (let s = 0; s < WINDOW; s++) windows[from + s]! *= factor;
  }
  return windows;
}

/** Every tenth window is kept for the error that is told. */
function trainOne(
  { values, low, high }: Sampled,
  { seed, batches }: TrainingOptions,
  onProgress: (share: number) => void,
): MetricModel {
  const isKept = (i: number): boolean => Math.floor(i / WINDOW) % 10 === 9;
  const learnt = Float32Array.from(values.filter((_, i) => !isKept(i)));
  const kept = Float32Array.from(values.filter((_, i) => isKept(i)));
  const model = trainVae(withLowLevels(learnt, seeded(seed + 2)), {
    ...DEFAULT_TRAINING,
    shape: MINDER_SHAPE,
    seed,
    batches,
    divergence: DEFAULT_DIVERGENCE,
    onProgress,
  });
  const vae = vaeToJson(model);
  const round = (value: number): number => Number(value.toPrecision(4));
  const limits: Limits = [round(low), round(high)];
  const mse = round(reconstructionError(vaeFromJson(vae), kept.length > 0 ? kept : learnt));
  return { limits, mse, windows: learnt.length / WINDOW, vae };
}
