/** What Minder's accused machine did in the metric that accused it, in the report's terms. */
import { median } from "../../../maths/robust.ts";
import type { MetricGrid } from "../../../model/fleet.ts";
import type { Deviation } from "../../../model/machine-report.ts";
import { catalogMetric } from "../../../model/metric-catalog.ts";

/** Means over the time span of every machine; NaN where it has no sample in it. */
function meansBetween(grid: MetricGrid, fromS: number, toS: number): Float64Array {
  const { startS, stepS, ticks, mean } = grid;
  const first = Math.max(0, Math.min(ticks - 1, Math.round((fromS - startS) / stepS)));
  const last = Math.max(first, Math.min(ticks - 1, Math.round((toS - startS) / stepS)));
  return Float64Array.from({ length: mean.length / ticks }, (_, machine) => {
    let sum = 0;
    let count = 0;
    for (let tick = first; tick <= last; tick++) {
      const value = mean[machine * ticks + tick]!;
      if (Number.isNaN(value)) continue;
      sum += value;
      count++;
    }
    return count === 0 ? NaN : sum / count;
  });
}

export function deviationOf(
  grid: MetricGrid,
  machine: number,
  fromS: number,
  toS: number,
  score: number,
): Deviation {
  const means = meansBetween(grid, fromS, toS);
  const peers = median(means.filter((value, i) => i !== machine && !Number.isNaN(value)));
  const value = means[machine]!;
  const { metric } = grid;
  const direction = Number.isNaN(value) ? "absent" : value < peers ? "low" : "high";
  return { metric, direction, device: null, fromS, toS, value, peers, sigmas: score };
}

export function titleOf(metric: string): string {
  return catalogMetric(metric)?.title ?? metric;
}

/** "6.5 min", "45 s". */
export function lasting(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${(seconds / 60).toFixed(1)} min`;
}
