/** The distances that the paper compares with Euclid's (§6.5), by trying all pairs. */
import { distanceSums } from "../../../src/methods/machines/minder/candidates.ts";

export type DistanceMeasure = "euclid" | "manhattan" | "chebyshev";

export function sumsBy(measure: DistanceMeasure): typeof distanceSums {
  if (measure === "euclid") return distanceSums;
  return (points, sums) => {
    const count = sums.length;
    const dimensions = points.length / count;
    sums.fill(0);
    for (let i = 0; i < count; i++)
      for (let j = i + 1; j < count; j++) {
        let distance = 0;
        for (let d = 0; d < dimensions; d++) {
          const apart = Math.abs(points[i * dimensions + d]! - points[j * dimensions + d]!);
          if (measure === "manhattan") distance += apart;
          else if (apart > distance) distance = apart;
        }
        sums[i]! += distance;
        sums[j]! += distance;
      }
  };
}
