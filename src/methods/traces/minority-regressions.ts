/**
 * ⑤-minority: more time in kernels outside the instrumented set (FLARE §5.2.4, §7.3.3). V_minority counts only time in
 * which no instrumented kernel runs; where communication overlaps most of the step (FSDP) it hardly moves, so the summed
 * time of these kernels counts, too, if there are more launches of them.
 */
import { median } from "../../maths/robust.ts";
import type { KernelRow, RankProfile } from "../../model/trace-profile.ts";
import type { Healthy } from "./healthy.ts";
import type { SlowerKernel } from "./kernel-regressions.ts";
import { growthOf, LEAST_SHARE } from "./stall-regressions.ts";

interface Growth {
  readonly share: number;
  readonly healthyShare: number;
  readonly growth: number;
  readonly limit: number;
}

export interface MoreMinority {
  readonly profile: RankProfile;
  readonly grown: Growth;
  readonly more: readonly MinorityGrowth[];
}

/** `slower` are kernels of the rank that took longer each: what they explain has been said of them. */
export function minorityGrowth(
  profile: RankProfile,
  healthy: Healthy,
  isSame: boolean,
  slower: readonly SlowerKernel[],
): MoreMinority[] {
  // Equation 2 leaves T_inter out: a longer void alone would make it grow.
  const ofStep = ({ vMinority, vInter }: RankProfile): number[] =>
    vMinority.map((share, step) => share * (1 - vInter[step]!));
  const all = summedGrowth(profile, healthy);
  const alone = growthOf(profile, healthy, isSame, ({ vMinority }) => vMinority, ofStep);
  // Less communication beside the same kernels exposes more of them: that much is not theirs.
  const exposed = { ...alone, growth: Math.min(alone.growth, all.growth) };
  const summed = isSame && all.isMore && all.isSlower ? [all] : [];
  const more = moreMinority(profile, healthy);
  const said = slower
    .filter(({ row }) => row.kind === "minority")
    .reduce((sum, { cost }) => sum + cost, 0);
  const grown = [exposed, ...summed].find(({ growth, limit }) => growth - said > limit);
  return grown && more.length > 0 ? [{ profile, grown, more }] : [];
}

/** Their time whatever runs beside them; whether there are more launches, and whether the step is longer. */
function summedGrowth(
  profile: RankProfile,
  healthy: Healthy,
): Growth & { isMore: boolean; isSlower: boolean } {
  const others = healthy.of(profile.rank);
  const now = summed(profile);
  const before = others.map(summed);
  const stepMs = median(profile.stepMs);
  const times = before.map(({ ms }) => ms);
  const apart = (Math.max(...times) - Math.min(...times)) / stepMs;
  const healthyShare = median(before.map(({ share }) => share));
  return {
    share: now.share,
    healthyShare,
    growth: Math.min(now.share - healthyShare, (now.ms - median(times)) / stepMs),
    limit: healthy.caution * Math.max(LEAST_SHARE, apart),
    isMore: now.perStep > Math.max(...before.map(({ perStep }) => perStep)),
    isSlower: stepMs > median(others.map((other) => median(other.stepMs))),
  };
}

function summed({ kernels, stepMs }: RankProfile): { share: number; perStep: number; ms: number } {
  const rows = kernels.filter(({ kind }) => kind === "minority");
  const share = rows.reduce((sum, row) => sum + row.share, 0);
  const perStep = rows.reduce((sum, row) => sum + row.perStep, 0);
  return { share, perStep, ms: share * median(stepMs) };
}

interface MinorityGrowth {
  readonly name: string;
  /** Shares of the step. */
  readonly share: number;
  readonly healthyShare: number;
  /** Launches in a step. */
  readonly perStep: number;
  readonly healthyPerStep: number;
}

/** Which minority kernels there are more of, and by how much; the largest growth first. */
function moreMinority(profile: RankProfile, healthy: Healthy): MinorityGrowth[] {
  const before = new Map<string, { share: number[]; perStep: number[] }>();
  const others = healthy.of(profile.rank);
  for (const { kernels } of others) {
    for (const [name, row] of byName(kernels)) {
      const known = before.get(name) ?? { share: [], perStep: [] };
      known.share.push(row.share);
      known.perStep.push(row.perStep);
      before.set(name, known);
    }
  }
  return [...byName(profile.kernels)]
    .map(([name, { share, perStep }]) => {
      const known = before.get(name);
      return {
        name,
        share,
        perStep,
        healthyShare: known ? median(known.share) : 0,
        healthyPerStep: known ? median(known.perStep) : 0,
      };
    })
    .filter(({ share, healthyShare }) => share > healthyShare)
    .toSorted((a, b) => b.share - b.healthyShare - (a.share - a.healthyShare));
}

function byName(rows: readonly KernelRow[]): Map<string, { share: number; perStep: number }> {
  const sums = new Map<string, { share: number; perStep: number }>();
  for (const { name, kind, share, perStep } of rows) {
    if (kind !== "minority") continue;
    const known = sums.get(name) ?? { share: 0, perStep: 0 };
    sums.set(name, { share: known.share + share, perStep: known.perStep + perStep });
  }
  return sums;
}
