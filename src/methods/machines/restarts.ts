/**
 * Profiling fields after an exporter's restart. DCGM samples them by a watch that begins anew, so that the first values are of
 * a part of an interval, or 0: whoever was gone for a scrape or more is not judged by them until the watch is warm.
 */
import type { MetricGrid } from "../../model/fleet.ts";
import { isProfiling } from "./telemetry.ts";

/** Two of dcgm-exporter's default intervals of 30 s, and a watch's own period. */
const WARM_S = 90;

export function withoutWarmUp(grid: MetricGrid): MetricGrid {
  if (!isProfiling(grid)) return grid;
  const { ticks, stepS, mean } = grid;
  const machines = mean.length / ticks;
  const warm = Math.ceil(WARM_S / stepS);
  const least = stepS < 10 ? 2 : 1;
  let masked: Uint8Array | null = null;
  for (let m = 0; m < machines; m++) {
    let last = -1;
    for (let t = 0; t < ticks; t++) {
      if (Number.isNaN(mean[m * ticks + t]!)) continue;
      if (last >= 0 && t - last > least) {
        masked ??= new Uint8Array(mean.length);
        masked.fill(1, m * ticks + t, m * ticks + Math.min(ticks, t + warm));
      }
      last = t;
    }
  }
  if (!masked) return grid;
  const without = (values: Float32Array): Float32Array =>
    values.map((value, at) => (masked[at] === 1 ? NaN : value));
  const kept = without(mean);
  return {
    ...grid,
    mean: kept,
    low: grid.low === mean ? kept : without(grid.low),
    high: grid.high === mean ? kept : without(grid.high),
  };
}
