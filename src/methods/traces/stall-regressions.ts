/**
 * ④ and ⑤-inter: the CPU holds the GPU up more than it does in healthy runs (FLARE §5.2.2, §5.2.4). What FLARE detects
 * by the distribution of issue latencies and by V_inter, a Kineto trace also shows directly: how long the GPU waited
 * and in which call the CPU was then (stalls.ts). A call that can be named is accused when its stalls have grown
 * beyond the learnt level; time that cannot be named only when the distribution, too, has moved beyond the learnt
 * distance, because unequal inputs move the distribution (FLARE's first false alarm) and work on the CPU
 * fills the void between steps (its second) without any regression.
 */
import { median } from "../../maths/robust.ts";
import { movedDown, wasserstein } from "../../maths/wasserstein.ts";
import { STALL_CAUSES, type RankProfile, type StallCause } from "../../model/trace-profile.ts";
import { pooled, relativeLatencies, type Healthy } from "./healthy.ts";
import type { Likeness } from "./same-work.ts";

/** Of the step: less is not worth anybody's time, and within what a healthy step varies by. */
export const LEAST_SHARE = 0.01;
/** Of the step, where all healthy runs together have one step and nothing tells how much steps vary. */
const UNKNOWN_SHARE = 0.05;
/** Of the limit: ranks that show the same as one beyond it, but less of it, are named with it. */
const JOINS = 0.5;
/** Of the largest growth on the same rank: less is its side effect. A CPU that is slow also loads and waits longer. */
const SIDE_EFFECT = 0.2;
/** Of what has moved, so much must have moved to shorter latencies. Longer ones mean that the CPU runs further ahead. */
const MOSTLY = 0.8;

export interface StallGrowth {
  readonly profile: RankProfile;
  readonly cause: StallCause;
  /** Shares of the step: now, the healthy level, the growth that counts and what it had to exceed. */
  readonly share: number;
  readonly healthyShare: number;
  readonly growth: number;
  readonly limit: number;
  /** Whether most of it lies around the loader or between steps: then V_inter shows it. */
  readonly isInter: boolean;
  /**
   * Distance of issue latencies from the nearest healthy run's, and the learnt distance, shares of the step: of all
   * ranks together where these have moved, else of the rank.
   */
  readonly distance: number;
  readonly learntDistance: number;
  readonly isMoved: boolean;
}

export function stallGrowth(
  ranks: readonly RankProfile[],
  healthy: Healthy,
  { isSame }: Likeness,
): StallGrowth[] {
  const known = ranks.filter(({ rank }) =>
    healthy.runs.some((run) => run.ranks.some((one) => one.rank === rank)),
  );
  const together = nearest(
    pooled(known),
    healthy.runs.map((run) =>
      pooled(run.ranks.filter(({ rank }) => known.some((one) => one.rank === rank))),
    ),
  );
  const isAllMoved = known.length > 0 && isShorter(together, healthy.pooledDistance);
  return ranks.flatMap((profile) => {
    const own = nearest(
      relativeLatencies(profile),
      healthy.of(profile.rank).map(relativeLatencies),
    );
    const isMoved = isAllMoved || isShorter(own, healthy.rankDistance);
    const total = growthOf(profile, healthy, isSame, (one) => stepStalls(one, STALL_CAUSES));
    const loads = median(profile.loads) > 0;
    const isLoadKnown =
      known.includes(profile) || healthy.of(profile.rank).some((other) => median(other.loads) > 0);
    const grown = STALL_CAUSES.flatMap((cause): StallGrowth[] => {
      // Of ranks that the baseline lacks, those that load are held against none that do not (later pipeline stages).
      if (cause === "dataloader" && loads && !isLoadKnown) return [];
      const one = growthOf(profile, healthy, isSame, (other) => stepStalls(other, [cause]));
      // A stall that only changed its name (the chain after it is counted with it) costs nothing more.
      const growth = Math.min(one.growth, total.growth);
      if (growth <= Math.max(LEAST_SHARE, JOINS * one.limit)) return [];
      const inter = median(profile.interStalls[cause]);
      return [
        {
          profile,
          cause,
          share: one.share,
          healthyShare: one.healthyShare,
          growth,
          limit: one.limit,
          isInter: inter > 0.5 * one.share,
          distance: (isAllMoved ? together : own).distance,
          learntDistance: isAllMoved ? healthy.pooledDistance : healthy.rankDistance,
          isMoved,
        },
      ];
    });
    const most = Math.max(0, ...grown.map(({ growth }) => growth));
    return grown.filter(({ growth }) => growth >= SIDE_EFFECT * most);
  });
}

/**
 * A synchronisation that healthy runs make, too, ends when the GPU has run empty, and what keeps the CPU from launching
 * after it is charged to it. Where a Python function newly holds ranks up, and there are no more synchronisations than
 * before, that time is the function's.
 */
export function withoutOldSyncs(
  growths: readonly StallGrowth[],
  healthy: Healthy,
  isPython: (name: string) => boolean,
): StallGrowth[] {
  const isNewlyHeld = ({ profile, cause }: StallGrowth): boolean => {
    const name = cause === "host" ? profile.stallNames.host[0]?.name : undefined;
    const isOld = healthy
      .of(profile.rank)
      .some(({ stallNames }) => stallNames.host.some((known) => known.name === name));
    return name !== undefined && isPython(name) && !isOld;
  };
  const held = growths.filter(isNewlyHeld);
  return growths
    .filter((one) => held.length === 0 || !isOldSync(one, healthy))
    .map((one) => {
      const sync = held.includes(one)
        ? growths.find((other) => other.profile === one.profile && isOldSync(other, healthy))
        : undefined;
      if (!sync) return one;
      const growth = one.growth + sync.growth;
      return { ...one, growth, share: one.share + sync.share };
    });
}

/** Stalls at synchronisations of which there are no more than in healthy runs. */
export function isOldSync({ profile, cause }: StallGrowth, healthy: Healthy): boolean {
  if (cause !== "synchronization") return false;
  const usual = healthy.level(profile.rank, ({ calls }) => calls.synchronization).centre;
  return median(profile.calls.synchronization) <= usual;
}

/**
 * Growth of a share; where both do the same work also of the time, so that a shorter step alone is no growth. `ofStep` is
 * the same as a share of the whole step, where the share itself is one of something else.
 */
export function growthOf(
  profile: RankProfile,
  healthy: Healthy,
  isSame: boolean,
  sharesOf: (profile: RankProfile) => readonly number[],
  ofStep: (profile: RankProfile) => readonly number[] = sharesOf,
): { share: number; healthyShare: number; growth: number; limit: number } {
  const share = median(sharesOf(profile));
  const level = healthy.level(profile.rank, sharesOf);
  let growth = share - level.centre;
  if (isSame) {
    const msOf = (one: RankProfile): number[] =>
      ofStep(one).map((value, i) => value * one.stepMs[i]!);
    const ms = median(msOf(profile)) - healthy.level(profile.rank, msOf).centre;
    growth = Math.min(growth, ms / median(profile.stepMs));
  }
  const limit = Math.max(healthy.hasSteps ? LEAST_SHARE : UNKNOWN_SHARE, level.deviation);
  return { share, healthyShare: level.centre, growth, limit };
}

/** Stalls of some causes by step, around the loader and inside steps, shares of the step. */
export function stepStalls(profile: RankProfile, causes: readonly StallCause[]): number[] {
  return profile.stepMs.map((_, step) =>
    causes.reduce(
      (sum, cause) => sum + profile.intraStalls[cause][step]! + profile.interStalls[cause][step]!,
      0,
    ),
  );
}

/** Of one rank, milliseconds of its steps; null where there is nothing to compare. */
export function latencyDistanceMs(profile: RankProfile, healthy: Healthy): number | null {
  const { distance } = nearest(
    relativeLatencies(profile),
    healthy.of(profile.rank).map(relativeLatencies),
  );
  return Number.isFinite(distance) ? distance * median(profile.stepMs) : null;
}

interface Moved {
  readonly distance: number;
  readonly down: number;
}

function nearest(own: Float64Array, others: readonly Float64Array[]): Moved {
  return others
    .map((other) => ({ distance: wasserstein(own, other), down: movedDown(own, other) }))
    .filter(({ distance }) => !Number.isNaN(distance))
    .reduce((best, one) => (one.distance < best.distance ? one : best), {
      distance: Infinity,
      down: 0,
    });
}

function isShorter({ distance, down }: Moved, limit: number): boolean {
  return Number.isFinite(distance) && distance > limit && down > MOSTLY * distance;
}
