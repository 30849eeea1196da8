/** Every metric from the sides that matter: drops are judged by a machine's worst device, rises by its highest. */
import { median } from "../../maths/robust.ts";
import { catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import type { CatalogMetric } from "../../model/metric-catalog.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { Phase } from "../../model/machine-report.ts";
import { BLOCK_S, blocksOf, scaleOf, windowsOf, type Scale } from "./blocks.ts";
import { peerDeviations, type PeerDeviations } from "./peers.ts";
import { isIn } from "./phases.ts";

export type Side = "low" | "high";

export interface View {
  readonly metric: CatalogMetric;
  readonly grid: MetricGrid;
  readonly side: Side;
  /** The grid's values on this side. */
  readonly values: Float32Array;
  readonly scale: Scale;
  readonly peers: PeerDeviations;
}

export function viewsOf(
  fleet: Fleet,
  grid: MetricGrid,
  phases: readonly Phase[],
  blockS = BLOCK_S,
  window = 1,
): View[] {
  const metric = catalogMetric(grid.metric) ?? unknownMetric(grid.metric);
  const scale = scaleOf(metric, grid);
  const look = (values: Float32Array): PeerDeviations => {
    const blocks =
      window > 1
        ? windowsOf(grid, values, scale, window, pausesOf(grid, phases))
        : blocksOf(grid, values, scale, blockS);
    const isMasked = Uint8Array.from({ length: blocks.count }, (_, block) =>
      isIn(phases, blocks.startS + (block + 0.5) * blocks.blockS, "idle", "warm-up") ? 1 : 0,
    );
    // A port that is down is down in every stage.
    const isState = metric.group === "state";
    const role = isState ? new Int32Array(fleet.role.length) : fleet.role;
    const roles = isState ? 1 : fleet.roles.length;
    const { harm, onlyChanges } = metric;
    const natural = metric.natural === undefined ? Infinity : Math.log(metric.natural);
    const { material, ratio } = scale;
    return peerDeviations(blocks, {
      role,
      roles,
      material,
      harm,
      onlyChanges,
      natural,
      ratio,
      isMasked,
    });
  };
  const lowPeers = metric.harm === "high" ? null : look(grid.low);
  const highPeers =
    metric.harm === "low" ? null : grid.high === grid.low && lowPeers ? lowPeers : look(grid.high);
  const views: View[] = [];
  if (lowPeers) views.push({ metric, grid, side: "low", values: grid.low, scale, peers: lowPeers });
  if (highPeers)
    views.push({ metric, grid, side: "high", values: grid.high, scale, peers: highPeers });
  return views;
}

/** By tick: 1 where the job did something else, and at the edges, which a sample may share with it. */
function pausesOf({ ticks, startS, stepS }: MetricGrid, phases: readonly Phase[]): Uint8Array {
  const left = new Uint8Array(ticks);
  for (const { what, fromS, toS } of phases) {
    if (what === "halt") continue;
    const first = Math.max(0, Math.floor((fromS - startS) / stepS) - 1);
    left.fill(1, first, Math.max(first, Math.ceil((toS - startS) / stepS) + 1));
  }
  return left;
}

/** Median deviation of a machine between two times, in units of what matters; NaN where nothing was seen. */
export function deviationBetween(view: View, m: number, fromS: number, toS: number): number {
  const { blocks, deviation } = view.peers;
  const first = Math.max(0, Math.floor((fromS - blocks.startS) / blocks.blockS));
  const last = Math.min(blocks.count, Math.ceil((toS - blocks.startS) / blocks.blockS));
  const row = deviation.subarray(m * blocks.count + first, m * blocks.count + last);
  return median(row.filter((one) => one === one)) / view.scale.material;
}
