/** A linear support vector machine by Pegasos (Shalev-Shwartz et al., ICML '07): seeded, a baseline. */
import { randomInt, seeded } from "../../src/base/random.ts";
import { scaleOf, standardise, type Scale } from "./standardise.ts";

export interface LinearSvm {
  readonly scale: Scale;
  readonly weights: Float64Array;
  readonly bias: number;
}

export interface SvmOptions {
  readonly lambda: number;
  readonly steps: number;
  readonly seed: number;
}

export function fitSvm(
  rows: Float64Array,
  labels: Uint8Array,
  features: number,
  { lambda, steps, seed }: SvmOptions,
): LinearSvm {
  const scale = scaleOf(rows, features);
  const scaled = standardise(rows, scale);
  const random = seeded(seed);
  // The bias is a weight on a constant 1. The mean over the second half of the steps varies less than the last.
  const weights = new Float64Array(features + 1);
  const mean = new Float64Array(features + 1);
  for (let step = 1; step <= steps; step++) {
    const row = randomInt(random, labels.length);
    const from = row * features;
    const side = labels[row] === 1 ? 1 : -1;
    let margin = weights[features]!;
    for (let f = 0; f < features; f++) margin += weights[f]! * scaled[from + f]!;
    const rate = 1 / (lambda * (step + 1));
    for (let f = 0; f <= features; f++) weights[f]! *= 1 - rate * lambda;
    if (side * margin < 1) {
      for (let f = 0; f < features; f++) weights[f]! += rate * side * scaled[from + f]!;
      weights[features]! += rate * side;
    }
    if (2 * step > steps)
      for (let f = 0; f <= features; f++) mean[f]! += weights[f]! / Math.ceil(steps / 2);
  }
  return { scale, weights: mean.slice(0, features), bias: mean[features]! };
}

/** By row: distance from the plane, positive on the side of the positive class. */
export function scoreSvm({ scale, weights, bias }: LinearSvm, rows: Float64Array): Float64Array {
  const features = weights.length;
  const scaled = standardise(rows, scale);
  return Float64Array.from({ length: rows.length / features }, (_, row) => {
    let score = bias;
    for (let f = 0; f < features; f++) score += weights[f]! * scaled[row * features + f]!;
    return score;
  });
}
