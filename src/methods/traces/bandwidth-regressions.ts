/**
 * ③ Collectives slower than in healthy runs (FLARE §5.2.3). Groups of one kind do the same at different places, so the
 * slowest step of the slowest healthy group of the kind is the level: where the network is shared and noisy, healthy groups
 * already lie far apart, and only what is slower than all of them, even in its fastest step, is accused. A group
 * that no healthy run has lies at another place of the network and is not judged.
 */
import type { BandwidthRow, RankProfile } from "../../model/trace-profile.ts";
import type { Healthy } from "./healthy.ts";

export interface SlowCollective {
  readonly row: BandwidthRow;
  /** GB/s of the slowest healthy group of the kind. */
  readonly healthyGBps: number;
  /** Share of the step. */
  readonly cost: number;
}

/** Bandwidth of one link differs between healthy runs by a quarter at times; a third less is a fault of the network. */
const SLOWER = 1.5;
/** Transfers that are mostly latency: their "bandwidth" is that of the launch. */
const LEAST_BYTES = 64 * 1024;
const LEAST_COUNT = 4;

export function slowCollectives(
  profile: RankProfile,
  stepMs: number,
  healthy: Healthy,
  leastShare: number,
): SlowCollective[] {
  const rows = healthy.runs
    .flatMap(({ ranks }) => ranks.flatMap(({ bandwidth }) => bandwidth))
    .filter(isTelling);
  return profile.bandwidth.filter(isTelling).flatMap((row): SlowCollective[] => {
    const alike = rows.filter((other) => kindOf(other) === kindOf(row));
    const isKnown = alike.some(({ groupRanks }) => groupRanks.join() === row.groupRanks.join());
    if (!isKnown) return [];
    const healthyGBps = Math.min(...alike.map(({ stepGBps: [slowest] }) => slowest));
    // The mean, too: of two-humped times the median jumps from one hump to the other.
    const healthyMs = Math.max(...alike.map(({ meanMs }) => meanMs));
    if (row.stepGBps[1] * SLOWER > healthyGBps || row.meanMs < SLOWER * healthyMs) return [];
    const cost = (row.msPerStep * (1 - healthyMs / row.meanMs)) / stepMs;
    return cost < leastShare ? [] : [{ row, healthyGBps, cost }];
  });
}

function isTelling({ isWhole, bytes, count }: BandwidthRow): boolean {
  return isWhole && bytes >= LEAST_BYTES && count >= LEAST_COUNT;
}

/** "TENSOR_PARALLEL_0" and "TENSOR_PARALLEL_2" are of one kind. */
function kindOf({ collective, group, groupRanks, bytes }: BandwidthRow): string {
  return [collective, group.replace(/[_\d]+$/, ""), groupRanks.length, bytes].join("|");
}
