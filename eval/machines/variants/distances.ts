/** The distances that the paper compares with Euclid's (§6.5), by trying all pairs. */
import type { Distances } from "../../../src/methods/machines/minder/candidates.ts";

export type DistanceMeasure = "euclid" | "manhattan" | "chebyshev";

export function otherDistances(
  count: number,
  dimensions: number,
  measure: Exclude<DistanceMeasure, "euclid">,
): Distances {
  const stride = Math.ceil(count / 4) * 4;
  const points = new Float32Array(dimensions * stride);
  return {
    stride,
    points,
    sums(sums) {
      sums.fill(0);
      for (let i = 0; i < count; i++)
        for (let j = i + 1; j < count; j++) {
          let distance = 0;
          for (let at = 0; at < points.length; at += stride) {
            const apart = Math.abs(points[at + i]! - points[at + j]!);
            if (measure === "manhattan") distance += apart;
            else if (apart > distance) distance = apart;
          }
          sums[i]! += distance;
          sums[j]! += distance;
        }
    },
  };
}
