/**
 * Who makes a job slow, from two witnesses that see different things. The search follows the waiting and is exact
 * where waiting stands out from noise, whatever overlaps with what. Own times need no slow-down of the whole and
 * hold against any noise outside the rank, but are wrong about ranks whose operators run beside their kernels.
 * The search is believed where its ends are confirmed by own times, then own times, then a network that the
 * search ends at.
 */
import { median, spread } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { Account } from "./accounts.ts";
import type { SlowIterations } from "./slow-iterations.ts";
import { searchAll, waitsOf, type SearchEnd, type Waits } from "./wait-search.ts";

export interface SlowRank {
  readonly rank: Rank;
  readonly votes: number;
  readonly searched: number;
  readonly growthMs: number;
}

export interface Located {
  readonly ranks: readonly SlowRank[];
  /** The network, where no rank is slow: ranks that all slow groups share. */
  readonly network: readonly Rank[] | null;
  /** Share of the searches that came to this. */
  readonly agreement: number;
  /** How much longer slow iterations are, and how that compares with the noise of the others. */
  readonly growthMs: number;
  readonly totalMs: number;
}

/** Share of the votes that an end needs, and that all ends that are believed need together. */
const MIN_VOTES = 0.1;
const AGREED = 0.6;
/** Share of the slow-down that a slow rank's own time must show. */
const CONFIRMED = 0.25;
/** Of iterations that were picked one by one, so many, and nearly all, must be this rank's. */
const HABIT_LEAST = 4;
const HABIT_SHARE = 0.75;
/** A network is blamed only where the slow-down is plain: share of the iteration, deviations of its noise. */
const PLAIN_SHARE = 0.05;
const PLAIN_SIGMAS = 3;
/** Groups whose communication slowed by this share of the slowest one's are slow too. */
const SLOW_GROUP = 0.1;

export function locate(
  all: readonly RankOperators[],
  accounts: ReadonlyMap<Rank, Account>,
  groups: readonly Group[],
  slow: SlowIterations,
): Located | null {
  const waits = new Map<Rank, Waits>();
  for (const operators of all) {
    const found = waitsOf(operators, groups, slow.isSlow);
    if (found) waits.set(operators.rank, found);
  }
  if (waits.size < 2) return null;
  const growthMs = median([...waits.values()].map((each) => each.growthMs));
  const [first] = accounts.values();
  const normal = [...first!.totalMs].filter((_, i) => !slow.isSlow(first!.iteration[i]!));
  const totalMs = median(normal);
  const ends = searchAll(waits, groups).filter(({ votes }) => votes >= MIN_VOTES * waits.size);
  const confirmed = ends.filter(
    (end) =>
      end.cause === "compute" &&
      ownGrowth(accounts, end.ranks[0]!, slow) >= CONFIRMED * growthMs &&
      (slow.isLasting || isHabit(accounts.get(end.ranks[0]!)!, slow, CONFIRMED * growthMs)),
  );
  const agreement = share(confirmed, waits.size);
  if (growthMs > 0 && agreement >= AGREED) {
    const ranks = confirmed.map(({ ranks: [rank], votes }) => ({
      rank: rank!,
      votes,
      searched: waits.size,
      growthMs: ownGrowth(accounts, rank!, slow),
    }));
    return { ranks, network: null, agreement, growthMs, totalMs };
  }
  const network = ends.filter(({ cause }) => cause === "network");
  // Of iterations picked for their length all that communicates is longer, whoever is at fault.
  const isPlain =
    slow.isLasting &&
    growthMs >= PLAIN_SHARE * totalMs &&
    growthMs >= PLAIN_SIGMAS * spread(normal, totalMs);
  if (!isPlain || share(network, waits.size) < AGREED) return null;
  const shared = sharedBySlowGroups(waits, groups);
  return {
    ranks: [],
    network: shared.length > 0 ? shared : network[0]!.ranks,
    agreement: share(network, waits.size),
    growthMs,
    totalMs,
  };
}

function share(ends: readonly SearchEnd[], searched: number): number {
  return ends.reduce((sum, { votes }) => sum + votes, 0) / searched;
}

function ownGrowth(
  accounts: ReadonlyMap<Rank, Account>,
  rank: Rank,
  { isSlow }: SlowIterations,
): number {
  const account = accounts.get(rank);
  if (!account) return 0;
  const { iteration, ownMs } = account;
  const times = (wanted: boolean): number[] =>
    [...ownMs].filter((_, i) => iteration[i]! > 2 && isSlow(iteration[i]!) === wanted);
  return median(times(true)) - median(times(false));
}

/** Whether the rank is slow in nearly all of the iterations that were picked: hiccups hit ranks at random. */
function isHabit(
  { iteration, ownMs }: Account,
  { isSlow }: SlowIterations,
  least: number,
): boolean {
  const usual = median([...ownMs].filter((_, i) => iteration[i]! > 2 && !isSlow(iteration[i]!)));
  const picked = [...ownMs].filter((_, i) => isSlow(iteration[i]!));
  const slow = picked.filter((own) => own - usual >= least).length;
  return slow >= HABIT_LEAST && slow >= HABIT_SHARE * picked.length;
}

/** Communication of a group slowed by what even its last member stays longer: what all slow groups share. */
function sharedBySlowGroups(waits: ReadonlyMap<Rank, Waits>, groups: readonly Group[]): Rank[] {
  const growth = groups.flatMap(({ id, ranks }) => {
    const members = ranks.filter((rank) => waits.get(rank)?.groups.has(id));
    if (members.length < 2 || members.length < ranks.length) return [];
    return [{ ranks, grew: Math.min(...members.map((rank) => waits.get(rank)!.groups.get(id)!)) }];
  });
  // A link is slow both ways; a stage that sends late is so in one.
  for (const [rank, { receives }] of waits) {
    for (const [peer, there] of receives) {
      const back = waits.get(peer)?.receives.get(rank);
      if (peer > rank && back !== undefined)
        growth.push({ ranks: [rank, peer], grew: Math.min(there, back) });
    }
  }
  growth.sort((a, b) => b.grew - a.grew);
  const slowest = growth[0];
  if (!slowest || slowest.grew <= 0) return [];
  let shared = [...slowest.ranks];
  for (const { ranks, grew } of growth.slice(1)) {
    if (grew < SLOW_GROUP * slowest.grew) break;
    const both = shared.filter((rank) => ranks.includes(rank));
    if (both.length > 0) shared = both;
  }
  return shared;
}
