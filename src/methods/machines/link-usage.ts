/** Minder's "PCIe usage": what goes over the bus of what its link could carry. No exporter has it; it is computed. */
import type { MetricGrid } from "../../model/fleet.ts";

/** Bytes a second that one lane carries one way, by generation. */
const LANE_BYTES_PER_S = [0, 2.5e8, 5e8, 9.85e8, 1.969e9, 3.938e9, 7.563e9];

export function linkUsage(grids: readonly MetricGrid[]): MetricGrid | null {
  const bandwidth = grids.find(({ metric }) => metric === "pcie-bandwidth");
  const generation = grids.find(({ metric }) => metric === "pcie-link-generation");
  const width = grids.find(({ metric }) => metric === "pcie-link-width");
  if (!bandwidth || !generation || !width) return null;
  if (generation.ticks !== bandwidth.ticks || width.ticks !== bandwidth.ticks) return null;
  const { ticks, mean, reporting } = bandwidth;
  const share = (values: Float32Array, isSum: boolean): Float32Array =>
    values.map((value, at) => {
      const lane = LANE_BYTES_PER_S[Math.round(generation.low[at]!)] ?? NaN;
      const links = isSum ? (reporting?.[at] ?? 1) : 1;
      return value / (2 * links * width.low[at]! * lane);
    });
  const low = share(bandwidth.low, false);
  return {
    ...bandwidth,
    metric: "pcie-usage",
    source: `${bandwidth.source} of what the link carries`,
    ticks,
    mean: bandwidth.low === mean ? low : share(mean, true),
    low,
    high: bandwidth.high === bandwidth.low ? low : share(bandwidth.high, false),
  };
}
