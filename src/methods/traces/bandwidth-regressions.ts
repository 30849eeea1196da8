/**
 * ③ Collectives slower than in healthy runs (FLARE §5.2.3). Groups of one kind do the same at different places, so the
 * slowest step of the slowest healthy group of the kind is the level, and how far all their steps lie apart is what the
 * network varies by: only what is slower than the level by more than that, even in its fastest step, is accused. Where
 * the network is shared and noisy, healthy groups already lie far apart, and little is. A group that no healthy run
 * has lies at another place of the network and is not judged.
 */
import type { BandwidthRow, RankProfile } from "../../model/trace-profile.ts";
import type { LeastTimes } from "./bandwidth.ts";
import type { Healthy } from "./healthy.ts";

export interface SlowCollective {
  readonly row: BandwidthRow;
  /** GB/s of the slowest healthy group of the kind. */
  readonly healthyGBps: number;
  /** How many times slower than the slowest healthy step, and what that had to exceed. */
  readonly ratio: number;
  readonly limit: number;
  /** Share of the step. */
  readonly cost: number;
}

/** Bandwidth of one link differs between healthy runs by a quarter at times; a third less is a fault of the network. */
const SLOWER = 1.5;
/** From so many healthy steps on, what they vary by is known well enough to replace that. */
const LEARNT_STEPS = 6;
/** The least that counts: healthy NICs and cables differ by some percent. */
const LEAST_SLOWER = 1.04;
/** Transfers that are mostly latency: their "bandwidth" is that of the launch. */
const LEAST_BYTES = 64 * 1024;
const LEAST_COUNT = 4;

/** For groups of which every member left a trace: waiting is separated from transfer. */
export function slowCollectives(
  profile: RankProfile,
  stepMs: number,
  healthy: Healthy,
  leastShare: number,
): SlowCollective[] {
  const rows = rowsOf(healthy, true);
  const slow = profile.bandwidth.filter(isTelling).flatMap((row): SlowCollective[] => {
    const alike = row.isWhole ? likeRow(row, rows) : [];
    if (alike.length === 0) return [];
    const healthyGBps = Math.min(...alike.map(({ stepGBps: [slowest] }) => slowest));
    const fastest = Math.max(...alike.map(({ stepGBps: [, most] }) => most));
    const limit = limitOf(fastest / healthyGBps, healthy);
    const ratio = healthyGBps / row.stepGBps[1];
    // The mean, too: of two-humped times the median jumps from one hump to the other.
    const healthyMs = Math.max(...alike.map(({ meanMs }) => meanMs));
    if (ratio <= limit || row.meanMs <= healthyMs) return [];
    const cost = (row.msPerStep * (1 - healthyMs / row.meanMs)) / stepMs;
    return [{ row, healthyGBps, ratio, limit, cost }];
  });
  // Collectives of several sizes use the same links: what they cost together counts.
  return slow.reduce((sum, { cost }) => sum + cost, 0) < leastShare ? [] : slow;
}

/**
 * Of groups of which some members left no trace, a kernel's time may be waiting for those. But a wait comes and goes from
 * call to call, while a slow link stretches all of them: so the shortest transfer of a step is compared, the whole
 * of its growth must be SLOWER, and several collectives of the job must show the same factor.
 */
export function slowUntraced(
  profiles: readonly RankProfile[],
  healthy: Healthy,
  leastShare: number,
  stepMsOf: (profile: RankProfile) => number,
): { profile: RankProfile; slow: SlowCollective }[] {
  const rows = rowsOf(healthy, false);
  const found = profiles.flatMap((profile) =>
    profile.bandwidth.filter(isTelling).flatMap((row: BandwidthRow & LeastTimes) => {
      const least = row.isWhole ? undefined : row.leastMs;
      // The group itself only: how long one waits for the others differs from place to place.
      const alike = rows
        .filter((other) => kindOf(other) === kindOf(row) && isSameGroup(other, row))
        .flatMap((other) => other.leastMs ?? []);
      if (!least || alike.length === 0) return [];
      const slowest = Math.max(...alike);
      const limit = Math.max(SLOWER, limitOf(slowest / Math.min(...alike), healthy));
      const ratio = least[0] / slowest;
      if (ratio <= limit) return [];
      const healthyGBps = (row.stepGBps[1] * least[0]) / slowest;
      const cost = (row.msPerStep * (1 - slowest / least[0])) / stepMsOf(profile);
      return [{ profile, slow: { row, healthyGBps, ratio, limit, cost } }];
    }),
  );
  const ratios = found.map(({ slow }) => slow.ratio);
  const places = new Set(
    found.map(({ slow: { row } }) => `${row.collective}|${row.groupRanks.join()}`),
  );
  const isAlike = places.size > 1 && Math.max(...ratios) < SLOWER * Math.min(...ratios);
  const most = Math.max(0, ...found.map(({ slow }) => slow.cost));
  return isAlike && most >= leastShare ? found : [];
}

function limitOf(apart: number, healthy: Healthy): number {
  const steps = healthy.runs.reduce((sum, { ranks }) => sum + (ranks[0]?.stepMs.length ?? 0), 0);
  const learnt = 1 + healthy.caution * (apart - 1);
  return Math.max(steps < LEARNT_STEPS ? SLOWER : LEAST_SLOWER, learnt);
}

function rowsOf({ runs }: Healthy, isWhole: boolean): (BandwidthRow & LeastTimes)[] {
  return runs
    .flatMap(({ ranks }) => ranks.flatMap(({ bandwidth }) => bandwidth))
    .filter((row) => row.isWhole === isWhole && isTelling(row));
}

/** Rows of the kind, where the group itself is among them. */
function likeRow<T extends BandwidthRow>(row: BandwidthRow, rows: readonly T[]): T[] {
  const alike = rows.filter((other) => kindOf(other) === kindOf(row));
  return alike.some((other) => isSameGroup(other, row)) ? alike : [];
}

function isSameGroup(a: BandwidthRow, b: BandwidthRow): boolean {
  return a.groupRanks.join() === b.groupRanks.join();
}

function isTelling({ bytes, count }: BandwidthRow): boolean {
  return bytes >= LEAST_BYTES && count >= LEAST_COUNT;
}

/** "TENSOR_PARALLEL_0" and "TENSOR_PARALLEL_2" are of one kind. */
function kindOf({ collective, group, groupRanks, bytes }: BandwidthRow): string {
  return [collective, group.replace(/[_\d]+$/, ""), groupRanks.length, bytes].join("|");
}
