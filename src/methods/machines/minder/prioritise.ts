/**
 * Which metrics show faults first (§4.3): for labelled spans of time the greatest z-score that any machine has in each metric,
 * a decision tree over these, and the metrics by how near the tree's root they are asked for.
 */
import { growForest } from "../../../maths/forest-grow.ts";
import type { Fleet, MetricGrid } from "../../../model/fleet.ts";

/** A span of a task, with or without a faulty machine in it. */
export interface LabelledSpan {
  readonly fromS: number;
  readonly toS: number;
  readonly isFaulty: boolean;
  /** Index of the machine that is meant; null: all, which were healthy. */
  readonly machine: number | null;
}

/** Layers of the tree, as many as Figure 7 shows. */
const LAYERS = 7;

/** Rows of z-scores by metric, a label a row. */
export interface Instances {
  readonly metrics: readonly string[];
  readonly rows: number[];
  readonly labels: number[];
}

export function addInstances(to: Instances, fleet: Fleet, spans: readonly LabelledSpan[]): void {
  for (const { fromS, toS, isFaulty, machine } of spans) {
    // Somebody else may have been faulty then.
    if (!isFaulty && machine !== null) continue;
    for (const metric of to.metrics) {
      const grid = fleet.grids.find((one) => one.metric === metric);
      const scores = grid ? zScores(grid, fromS, toS) : new Float64Array(0);
      to.rows.push(scores.reduce((most, score) => Math.max(most, score), 0));
    }
    to.labels.push(isFaulty ? 1 : 0);
  }
}

/**
 * By machine, |Z| over a span: z-scores are averaged over the span's samples first, for one noisy sample of a thousand
 * machines is large whatever happens. Absolute, though the paper writes max(Z): CPU usage falls when a process dies. 0
 * where there is nothing to compare.
 */
export function zScores(grid: MetricGrid, fromS: number, toS: number): Float64Array {
  const { startS, stepS, ticks, mean } = grid;
  const machines = mean.length / ticks;
  const first = Math.max(0, Math.ceil((fromS - startS) / stepS));
  const last = Math.min(ticks - 1, Math.floor((toS - startS) / stepS));
  const sums = new Float64Array(machines);
  const counts = new Int32Array(machines);
  for (let tick = first; tick <= last; tick++) {
    let [count, sum, square] = [0, 0, 0];
    for (let m = 0; m < machines; m++) {
      const value = mean[m * ticks + tick]!;
      if (Number.isNaN(value)) continue;
      count++;
      sum += value;
    }
    const centre = sum / count;
    for (let m = 0; m < machines; m++) {
      const value = mean[m * ticks + tick]!;
      if (!Number.isNaN(value)) square += (value - centre) ** 2;
    }
    const deviation = Math.sqrt(square / (count - 1));
    for (let m = 0; m < machines; m++) {
      const value = mean[m * ticks + tick]!;
      if (Number.isNaN(value)) continue;
      counts[m]!++;
      if (deviation > 1e-9 * Math.abs(centre)) sums[m]! += (value - centre) / deviation;
    }
  }
  // A machine without samples has a sum of 0.
  return sums.map((sum, m) => Math.abs(sum) / Math.max(1, counts[m]!));
}

/**
 * The metrics that the tree asks for, by depth of first use, then by what their questions told; then those that a tree
 * without them asks for, and so on: few labels are told apart by one or two metrics, and a site may lack these tomorrow.
 */
export function prioritise(all: Instances): readonly string[] {
  const order: string[] = [];
  for (let left = all; left.metrics.length > 0;) {
    const asked = askedByTree(left);
    if (asked.length === 0) break;
    order.push(...asked);
    left = without(left, new Set(asked));
  }
  return order;
}

function without({ metrics, rows, labels }: Instances, gone: ReadonlySet<string>): Instances {
  const isKept = (_: unknown, i: number): boolean => !gone.has(metrics[i % metrics.length]!);
  return { metrics: metrics.filter(isKept), rows: rows.filter(isKept), labels };
}

function askedByTree({ metrics, rows, labels }: Instances): readonly string[] {
  const tree = growForest(Float64Array.from(rows), Uint8Array.from(labels), metrics.length, {
    trees: 1,
    bootstrap: false,
    tried: metrics.length,
    maxDepth: LAYERS,
    minLeaf: 1,
    criterion: "gini",
    seed: 1,
  });
  const depth = new Map<number, number>();
  const walk = (node: number, layer: number): void => {
    const feature = tree.feature[node]!;
    if (feature < 0) return;
    depth.set(feature, Math.min(layer, depth.get(feature) ?? Infinity));
    walk(tree.left[node]!, layer + 1);
    walk(tree.right[node]!, layer + 1);
  };
  walk(tree.roots[0]!, 0);
  const asked = [...depth.keys()].sort(
    (a, b) => depth.get(a)! - depth.get(b)! || tree.gain[b]! - tree.gain[a]! || a - b,
  );
  return asked.map((feature) => metrics[feature]!);
}
