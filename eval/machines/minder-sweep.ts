/**
 * Every variant of Minder at every threshold in one pass over a task: who is farthest in each window does not depend on
 * the threshold, and variants share metrics. The same steps as runMinder, which small tasks are checked against.
 */
import { highestScore, traceOf, type Trace } from "../../src/methods/machines/minder/candidates.ts";
import type { Embedder } from "../../src/methods/machines/minder/embedding.ts";
import { shippedModels } from "../../src/methods/machines/minder/models.ts";
import { machinesIn } from "../../src/methods/machines/minder/preprocess.ts";
import type { Fleet, MetricGrid } from "../../src/model/fleet.ts";
import { otherDistances } from "./variants/distances.ts";
import {
  commonAxis,
  concatenated,
  integratedEmbedder,
  variantEmbedder,
  type Axis,
} from "./variants/embedding.ts";
import { INTEGRATED } from "./variants/integrated-model.ts";
import { MINDER, VARIANTS, type VariantOptions } from "./variants/options.ts";

export const THRESHOLDS = [2, 2.5, 3, 4, 5, 6] as const;
export type VariantName = keyof typeof VARIANTS;
export const VARIANT_NAMES = Object.keys(VARIANTS) as VariantName[];

/**
 * Samples from window to window: the paper's 1 up to 200 machines, 5 up to 600, then 10, where all pairs of machines take
 * too long; twice that where metrics lie side by side.
 */
export function strideOf(machines: number, name: VariantName): number {
  if (machines <= 200) return 1;
  const stride = machines <= 600 ? 5 : 10;
  return name === "CON" || name === "INT" ? 2 * stride : stride;
}

interface MetricTrace extends Trace {
  readonly machines: Int32Array;
  readonly stepS: number;
}

/** By variant, by threshold: the machine that it names, or null. */
export function sweepMinder(fleet: Fleet): Record<VariantName, (string | null)[]> {
  const known = new Map<string, MetricTrace>();
  const answers = VARIANT_NAMES.map((name): [VariantName, (string | null)[]] => {
    const options: VariantOptions = {
      ...MINDER,
      ...VARIANTS[name],
      stride: strideOf(fleet.machines.length, name),
    };
    const traces = tracesOf(fleet, options, known);
    return [name, THRESHOLDS.map((threshold) => firstNamed(fleet, traces, options, threshold))];
  });
  return Object.fromEntries(answers) as Record<VariantName, (string | null)[]>;
}

function tracesOf(
  fleet: Fleet,
  options: VariantOptions,
  known: Map<string, MetricTrace>,
): MetricTrace[] {
  const models = shippedModels();
  const find = (metric: string): MetricGrid[] =>
    fleet.grids.filter((grid) => grid.metric === metric && grid.coverage > 0).slice(0, 1);
  const grids = options.metrics.flatMap(find);
  const { stride, distance, embedding } = options;
  const trace = (
    embedder: Embedder,
    machines: Int32Array,
    { ticks, stepS }: Axis,
  ): MetricTrace => ({
    machines,
    stepS,
    ...traceOf(
      embedder,
      machines.length,
      ticks,
      stride,
      distance === "euclid"
        ? undefined
        : otherDistances(machines.length, embedder.dimensions, distance),
    ),
  });
  if (options.combine === "each")
    return grids.map((grid) => {
      const key = [grid.metric, embedding, distance].join();
      const machines = machinesIn(fleet, [grid]);
      const found =
        known.get(key) ??
        trace(variantEmbedder(grid, machines, grid, models, embedding), machines, grid);
      known.set(key, found);
      return found;
    });
  const isIntegrated = options.combine === "integrated";
  const together = isIntegrated ? INTEGRATED.inputs.flatMap(find) : grids;
  if (together.length === 0) return [];
  const machines = machinesIn(fleet, together);
  const axis = commonAxis(together);
  const embedder = isIntegrated
    ? integratedEmbedder(together, machines, axis, embedding)
    : concatenated(
        together.map((grid) => variantEmbedder(grid, machines, axis, models, embedding)),
      );
  return [trace(embedder, machines, axis)];
}

/** The first metric with a run that lasts ends the search (§4.4). */
function firstNamed(
  fleet: Fleet,
  traces: readonly MetricTrace[],
  { continuityS, stride }: VariantOptions,
  threshold: number,
): string | null {
  for (const { machines, stepS, who, scores } of traces) {
    if (highestScore(machines.length) <= threshold) continue;
    const needed = Math.max(1, Math.ceil(continuityS / (stride * stepS) - 1e-9));
    let last = -1;
    let run = 0;
    for (let w = 0; w < who.length; w++) {
      const candidate = scores[w]! > threshold ? who[w]! : -1;
      run = candidate >= 0 && candidate === last ? run + 1 : candidate >= 0 ? 1 : 0;
      last = candidate;
      if (run >= needed) return fleet.machines[machines[candidate]!]!;
    }
  }
  return null;
}
