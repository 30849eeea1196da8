/**
 * Who makes a job slow, from witnesses that see different things. The search follows the waiting and is exact where
 * waiting stands out from noise, whatever overlaps with what. Own times need no slow-down of the whole and hold
 * against any noise outside the rank, but are wrong about ranks whose operators run beside their kernels. Floors tell
 * of the network alone. A rank is believed that the search ends at and own times confirm; then own times; then a
 * network; unless the network costs a good deal more than the ranks do.
 */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";
import { commonFactor, isShared, ownLevels } from "./common-growth.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import type { Culprit, Progress } from "./progressive/progressive.ts";
import type { SlowIterations } from "./slow-iterations.ts";

interface SlowRank {
  readonly rank: Rank;
  /** Pivots whose search ended here; 0 where only own times tell. */
  readonly votes: number;
  readonly searched: number;
  readonly growthMs: number;
}

export interface Located {
  /** Ranks that compute slowly. */
  readonly ranks: readonly SlowRank[];
  /** Share of the searches that came to these. */
  readonly agreement: number;
  /** What is slow in the network; beside ranks only where both are. */
  readonly network: Culprit | null;
  /** Whether communication between machines shows it, whichever rank waits. */
  readonly isPlain: boolean;
  /** Ranks without operators that the others wait for. */
  readonly unseen: Culprit | null;
}

/** Share of the votes that an end needs, and that all ends that are believed need together. */
const MIN_VOTES = 0.1;
const AGREED = 0.6;
/** Share of the slow-down that a slow rank's own time must show. */
const CONFIRMED = 0.25;
/** Of iterations that were picked one by one, so many, and nearly all, must be this rank's. */
const HABIT_LEAST = 4;
const HABIT_SHARE = 0.75;
/** A further rank that only own times accuse: its growth beside the largest. */
const ALSO = 0.7;
/** Communication that grew by this share of the slow-down is part of it. */
const NETWORK_SHARE = 0.1;
/**
 * Of iterations picked for their length all that communicates is longer, whoever is at fault: a group must show more there,
 * and one of all ranks (a fully sharded job has no other) nearly all that is lost. Within one machine it proves nothing:
 * what holds all of its processes up for a moment is its CPUs, and no NIC is between them.
 */
const NETWORK_SHARE_PICKED = 0.4;
const NETWORK_SHARE_OF_ALL = 0.75;

/**
 * `waitsFor`: whether a rank stays longer in operators that it shares with culprits; `isWaitedFor`: whether the others wait
 * for a rank in the slow iterations; `areSeveral`: whether the job is known to run on several machines.
 */
export function locate(
  { ends, network, arrivals }: Progress,
  own: readonly OwnTimeSuspect[],
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  slow: SlowIterations,
  growthMs: number,
  waitsFor: (rank: Rank, culprits: readonly Rank[]) => boolean,
  areSeveral: boolean,
  isWaitedFor: (rank: Rank) => boolean = () => true,
): Located {
  const searched = arrivals.length;
  const levels = new Map(
    [...accounts].map(([rank, account]) => [rank, ownLevels(account, slow.isSlow)] as const),
  );
  const factor = commonFactor([...levels.values()]);
  const growthOf = (rank: Rank): number => {
    const { slowMs, usualMs } = levels.get(rank) ?? { slowMs: 0, usualMs: 0 };
    return slowMs - usualMs;
  };
  const counted = ends.filter(({ votes }) => votes >= MIN_VOTES * searched);
  const confirmed = counted.filter(({ cause, ranks: [rank] }) => {
    if (cause !== "compute" || growthMs <= 0) return false;
    const least = CONFIRMED * growthMs;
    const grownMs = growthOf(rank!);
    if (grownMs < least || !isWaitedFor(rank!)) return false;
    // All became slower by the same factor: whoever comes last by a little is no slower than it was, beside the others.
    if (isShared(grownMs, levels.get(rank!)?.usualMs ?? 0, factor)) return false;
    return slow.isLasting || isHabit(accounts.get(rank!)!, slow, least);
  });
  const agreement = confirmed.reduce((sum, { votes }) => sum + votes, 0) / Math.max(1, searched);
  const ended: SlowRank[] =
    agreement >= AGREED
      ? confirmed.map(({ ranks: [rank], votes }) => ({
          rank: rank!,
          votes,
          searched,
          growthMs: growthOf(rank!),
        }))
      : [];
  const most = Math.max(0, ...ended.map((each) => each.growthMs));
  // Where iterations hardly grow, the share of the slow-down confirms anybody: beside the largest it does not.
  const ranks = ended.filter((each) => each.growthMs >= CONFIRMED * most);
  const found = ranks.map(({ rank }) => rank);
  for (const { rank, kind, beforeMs, afterMs } of found.length > 0 ? own : [])
    if (
      kind !== "always" &&
      !found.includes(rank) &&
      afterMs - beforeMs >= ALSO * most &&
      !waitsFor(rank, found)
    )
      ranks.push({ rank, votes: 0, searched, growthMs: afterMs - beforeMs });
  const slowed = counted.filter(({ cause }) => cause === "network");
  const agree = slowed.reduce((sum, { votes }) => sum + votes, 0) >= AGREED * searched;
  const least = (ranked: readonly Rank[]): number => {
    if (slow.isLasting) return NETWORK_SHARE * growthMs;
    if (ranked.length < accounts.size) return NETWORK_SHARE_PICKED * growthMs;
    return areSeveral ? NETWORK_SHARE_OF_ALL * growthMs : Infinity;
  };
  // What few operators show of it may be little of what the searches come to.
  const slowest = [network, agree ? slowed.find(({ isSignificant }) => isSignificant) : null].find(
    (one) =>
      one &&
      one.growthMs >= least(one.ranks) &&
      // What all compute grew by the same factor: there is more work, and the network is as fast as before.
      !isShared(one.growthMs, one.growthMs / (one.ratio - 1), factor),
  );
  const unseen = counted.find(({ cause, isSignificant }) => cause === "unseen" && isSignificant);
  return {
    ranks,
    agreement,
    network: slowest ?? null,
    isPlain: Boolean(slowest) && slowest === network,
    unseen: unseen && unseen.votes >= AGREED * searched ? unseen : null,
  };
}

/** Whether a job is known to run on several machines. */
export function isOnMachines({ ranks }: Pick<Job, "ranks">): boolean {
  const machines = new Set([...ranks.values()].map(({ machine }) => machine));
  machines.delete(null);
  return machines.size > 1;
}

/** Whether the rank is slow in nearly all of the iterations that were picked: hiccups hit ranks at random. */
function isHabit(
  { iteration, ownMs }: TimeBreakdown,
  { isSlow, leastHabit = HABIT_LEAST }: SlowIterations,
  least: number,
): boolean {
  const usual = median([...ownMs].filter((_, i) => iteration[i]! > 2 && !isSlow(iteration[i]!)));
  const picked = [...ownMs].filter((_, i) => isSlow(iteration[i]!));
  const slow = picked.filter((own) => own - usual >= least).length;
  return slow >= leastHabit && slow >= HABIT_SHARE * picked.length;
}
