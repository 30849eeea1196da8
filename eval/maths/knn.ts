/** K nearest neighbours, by trying all: a baseline that others are compared with, not for use at scale. */
import { scaleOf, standardise, type Scale } from "./standardise.ts";

export interface Knn {
  readonly k: number;
  readonly scale: Scale;
  readonly rows: Float64Array;
  readonly labels: Uint8Array;
}

export function fitKnn(rows: Float64Array, labels: Uint8Array, features: number, k: number): Knn {
  const scale = scaleOf(rows, features);
  return { k: Math.min(k, labels.length), scale, rows: standardise(rows, scale), labels };
}

/** By row: share of positives among its neighbours. Equally near: the earlier training row. */
export function predictKnn(knn: Knn, rows: Float64Array): Float64Array {
  const { k, scale, labels } = knn;
  const features = scale.mean.length;
  const asked = standardise(rows, scale);
  const distance = new Float64Array(k);
  const label = new Uint8Array(k);
  return Float64Array.from({ length: rows.length / features }, (_, row) => {
    distance.fill(Infinity);
    for (let other = 0; other < labels.length; other++) {
      let sum = 0;
      for (let f = 0; f < features && sum < distance[k - 1]!; f++)
        sum += (asked[row * features + f]! - knn.rows[other * features + f]!) ** 2;
      if (sum >= distance[k - 1]!) continue;
      let at = k - 1;
      for (; at > 0 && distance[at - 1]! > sum; at--) {
        distance[at] = distance[at - 1]!;
        label[at] = label[at - 1]!;
      }
      distance[at] = sum;
      label[at] = labels[other]!;
    }
    let positives = 0;
    for (let i = 0; i < k; i++) positives += label[i]!;
    return positives / k;
  });
}
