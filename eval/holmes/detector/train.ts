/** From labelled rows to the detector's model. Where the rows come from is the caller's affair. */
import { assert } from "../../../src/base/errors.ts";
import { randomInt, seeded } from "../../../src/base/random.ts";
import { growForest, type Forest, type ForestOptions } from "../../maths/forest-grow.ts";
import { predictRows } from "../../maths/forest.ts";
import { LEAST_SHARE } from "./detector.ts";
import { SHARE } from "./features.ts";

/** Rows row-major, labels 1 for abnormal. */
export interface LabelledRows {
  readonly features: number;
  readonly rows: Float64Array;
  readonly labels: Uint8Array;
}

export interface Score {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

export const FOREST_OPTIONS: ForestOptions = {
  trees: 30,
  maxDepth: 10,
  minLeaf: 20,
  criterion: "entropy",
  seed: 1,
};

export interface Trained {
  readonly forest: Forest;
  /** From this probability on an operator is abnormal. */
  readonly cut: number;
}

/**
 * `held` must come from other jobs than `given`: balanced rows make a forest too ready to accuse, since in a log
 * normal operators are the rule, and the cut that makes up for it shows only on whole logs.
 */
export function trainDetector(
  given: LabelledRows,
  held: LabelledRows,
  options: ForestOptions = FOREST_OPTIONS,
): Trained {
  const forest = growForest(given.rows, given.labels, given.features, options);
  return { forest, cut: bestCut(predictRows(forest, held.rows), held.labels) };
}

/** The rows that the detector asks its forest about; learning from others would teach it what it need not know. */
export function askedRows(data: LabelledRows): LabelledRows {
  const { features, rows } = data;
  return pickRows(
    data,
    [...data.labels.keys()].filter((row) => rows[row * features + SHARE]! >= LEAST_SHARE),
  );
}

function pickRows(
  { features, rows, labels }: LabelledRows,
  chosen: readonly number[],
): LabelledRows {
  const picked = new Float64Array(chosen.length * features);
  chosen.forEach((row, i) =>
    picked.set(rows.subarray(row * features, (row + 1) * features), i * features),
  );
  return { features, rows: picked, labels: Uint8Array.from(chosen, (row) => labels[row]!) };
}

/** All abnormal rows and at most `ratio` times as many normal ones, drawn without replacement. */
export function balance(data: LabelledRows, ratio: number, seed: number): LabelledRows {
  const { labels } = data;
  const random = seeded(seed);
  const normal: number[] = [];
  const chosen: number[] = [];
  labels.forEach((label, row) => (label === 1 ? chosen : normal).push(row));
  const wanted = Math.min(normal.length, Math.ceil(ratio * chosen.length));
  for (let i = 0; i < wanted; i++) {
    const j = i + randomInt(random, normal.length - i);
    [normal[i], normal[j]] = [normal[j]!, normal[i]!];
    chosen.push(normal[i]!);
  }
  return pickRows(data, chosen);
}

export function scoreOf(isAccused: (row: number) => boolean, labels: Uint8Array): Score {
  let hits = 0;
  let accused = 0;
  let abnormal = 0;
  for (let row = 0; row < labels.length; row++) {
    abnormal += labels[row]!;
    if (!isAccused(row)) continue;
    accused++;
    hits += labels[row]!;
  }
  const precision = accused > 0 ? hits / accused : 1;
  const recall = abnormal > 0 ? hits / abnormal : 1;
  return { precision, recall, f1: hits > 0 ? (2 * precision * recall) / (precision + recall) : 0 };
}

/** The score from which accusing gives the best F1; the middle of equally good ones' first gap. */
export function bestCut(scores: Float64Array, labels: Uint8Array): number {
  assert(scores.length > 0, "a cut needs rows");
  const order = Int32Array.from(scores, (_, row) => row).sort((a, b) => scores[b]! - scores[a]!);
  const abnormal = labels.reduce((sum, label) => sum + label, 0);
  let best = 0;
  let cut = 0.5;
  let hits = 0;
  for (let i = 0; i < order.length; i++) {
    hits += labels[order[i]!]!;
    const here = scores[order[i]!]!;
    const next = i + 1 < order.length ? scores[order[i + 1]!]! : -Infinity;
    if (next === here) continue;
    const f1 = (2 * hits) / (i + 1 + abnormal);
    if (f1 > best) {
      best = f1;
      cut = next === -Infinity ? here : (here + next) / 2;
    }
  }
  return cut;
}
