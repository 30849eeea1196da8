/**
 * Which metrics show faults first (§4.3): for labelled spans of time the greatest z-score that any machine has in each metric,
 * a decision tree over these, and the metrics by how near the tree's root they are asked for.
 */
import { randomInt, seeded, type Random } from "../../../base/random.ts";
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

function askedByTree(all: Instances): readonly string[] {
  const { metrics, labels } = all;
  const depth = new Map<number, number>();
  const gain = new Float64Array(metrics.length);
  // Of questions that tell as much the first one drawn is taken: the catalog's order must not decide.
  const random = seeded(1);
  const order = [...metrics.keys()];
  const grow = (spans: readonly number[], layer: number): void => {
    const asked = layer < LAYERS ? bestQuestion(all, spans, () => shuffle(order, random)) : null;
    if (asked === null) return;
    depth.set(asked.metric, Math.min(layer, depth.get(asked.metric) ?? Infinity));
    gain[asked.metric]! += asked.gain;
    const isLow = (span: number): boolean => scoreOf(all, span, asked.metric) <= asked.most;
    grow(spans.filter(isLow), layer + 1);
    grow(
      spans.filter((span) => !isLow(span)),
      layer + 1,
    );
  };
  grow([...labels.keys()], 0);
  const asked = [...depth.keys()].sort(
    (a, b) => depth.get(a)! - depth.get(b)! || gain[b]! - gain[a]! || a - b,
  );
  return asked.map((metric) => metrics[metric]!);
}

/** Spans with a score of at most so much are parted from the others. */
interface Question {
  readonly metric: number;
  readonly most: number;
  /** Impurity (Gini's) that it takes away, in spans. */
  readonly gain: number;
}

/** Of questions that tell as much, that of the first metric drawn; null where nothing is to be told apart, or can be. */
function bestQuestion(
  all: Instances,
  spans: readonly number[],
  draw: () => readonly number[],
): Question | null {
  const faulty = spans.reduce((sum, span) => sum + all.labels[span]!, 0);
  const impurity = (positive: number, count: number): number =>
    2 * positive * (1 - positive / count);
  const whole = impurity(faulty, spans.length);
  if (whole === 0) return null;
  let best: Question | null = null;
  for (const metric of draw()) {
    const sorted = spans.toSorted((a, b) => scoreOf(all, a, metric) - scoreOf(all, b, metric));
    let below = 0;
    for (let i = 1; i < sorted.length; i++) {
      below += all.labels[sorted[i - 1]!]!;
      const most = scoreOf(all, sorted[i - 1]!, metric);
      if (scoreOf(all, sorted[i]!, metric) === most) continue;
      const gain = whole - impurity(below, i) - impurity(faulty - below, sorted.length - i);
      if (gain > (best?.gain ?? 0) + 1e-9) best = { metric, most, gain };
    }
  }
  return best;
}

/** In place. */
function shuffle(order: number[], random: Random): readonly number[] {
  for (let i = 0; i < order.length; i++) {
    const j = i + randomInt(random, order.length - i);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

function scoreOf({ rows, metrics }: Instances, span: number, metric: number): number {
  return rows[span * metrics.length + metric]!;
}
