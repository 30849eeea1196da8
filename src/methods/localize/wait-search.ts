/**
 * From whoever waits to whom they wait for (Holmes, algorithm 1, as accounting): in the operators of a group in
 * which a rank's time grew, the member whose time grew least came last, and the others waited for it. From
 * there on the same question, until a rank waits no longer than before (it computes slowly), or a group in which
 * all members' time grew alike (what is slow is the communication itself).
 */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";

/** How much longer a rank stays in operators of each kind in slow iterations, milliseconds an iteration. */
export interface Waits {
  readonly rank: Rank;
  /** Group id → growth, of collectives. */
  readonly groups: ReadonlyMap<number, number>;
  /** The other side → growth, of receives from it. */
  readonly receives: ReadonlyMap<Rank, number>;
  /** How much longer its iterations are. */
  readonly growthMs: number;
}

export interface SearchEnd {
  readonly cause: "compute" | "network";
  /** The slow rank; or the members of the group, or the two sides of the link, that communicate slowly. */
  readonly ranks: readonly Rank[];
  /** Ranks from which the search came here. */
  readonly votes: number;
}

/** Share of the slow-down below which time in a group is taken for no longer than before. */
const LONGER = 0.3;
/** All alike: the least growth is this share of the largest. */
const ALIKE = 0.6;
const MOST_HOPS = 64;

export function waitsOf(
  { rank, ops, groupIds, from, to, iteration, durationMs }: RankOperators,
  groups: readonly Group[],
  isSlow: (iteration: number) => boolean,
): Waits | null {
  const slow = [...iteration.keys()].filter((i) => isSlow(iteration[i]!));
  const normal = [...iteration.keys()].filter((i) => iteration[i]! > 2 && !isSlow(iteration[i]!));
  if (slow.length < 3 || normal.length < 3) return null;
  const inGroup = new Map<number, Float64Array>();
  const received = new Map<Rank, Float64Array>();
  for (let i = 0; i < iteration.length; i++) {
    for (let op = from[i]!; op < to[i]!; op++) {
      const took = ops.durationMs[op]!;
      const group = groupIds[ops.group[op]!] ?? -1;
      if (!(took >= 0) || group < 0) continue;
      if (ops.isP2p[op] === 0) add(inGroup, group, i, took, iteration.length);
      else if (ops.isSend[op] === 0) {
        const peer = groups[group]?.ranks[ops.peer[op]!];
        if (peer !== undefined) add(received, peer, i, took, iteration.length);
      }
    }
  }
  const growth = (times: Float64Array): number =>
    median(slow.map((i) => times[i]!)) - median(normal.map((i) => times[i]!));
  const grown = <K>(map: ReadonlyMap<K, Float64Array>): Map<K, number> =>
    new Map([...map].map(([key, times]) => [key, growth(times)]));
  return { rank, groups: grown(inGroup), receives: grown(received), growthMs: growth(durationMs) };
}

function add<K>(map: Map<K, Float64Array>, key: K, at: number, took: number, length: number): void {
  let times = map.get(key);
  if (!times) map.set(key, (times = new Float64Array(length)));
  times[at]! += took;
}

/** The ends that searches from all ranks come to, the one with most votes first. */
export function searchAll(waits: ReadonlyMap<Rank, Waits>, groups: readonly Group[]): SearchEnd[] {
  const ends = new Map<
    string,
    { cause: SearchEnd["cause"]; ranks: readonly Rank[]; votes: number }
  >();
  for (const start of waits.keys()) {
    const end = searchFrom(start, waits, groups);
    if (!end) continue;
    const key = `${end.cause} ${end.ranks.join()}`;
    const known = ends.get(key);
    if (known) known.votes++;
    else ends.set(key, { ...end, votes: 1 });
  }
  return [...ends.values()].sort((a, b) => b.votes - a.votes);
}

function searchFrom(
  start: Rank,
  waits: ReadonlyMap<Rank, Waits>,
  groups: readonly Group[],
): Omit<SearchEnd, "votes"> | null {
  const seen = new Set<Rank>();
  let rank = start;
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const here = waits.get(rank);
    if (!here || seen.has(rank)) return null;
    seen.add(rank);
    const longest = longestWait(here);
    if (!longest) return { cause: "compute", ranks: [rank] };
    if (longest.peer !== null) {
      // A late sender, if it was held up itself; a slow link, if it was not and is not slow either.
      rank = longest.peer;
      continue;
    }
    const members = groups[longest.group]!.ranks.filter((member) => waits.has(member));
    const growth = (member: Rank): number => waits.get(member)!.groups.get(longest.group) ?? 0;
    const last = members.reduce((a, b) => (growth(b) < growth(a) ? b : a));
    if (growth(last) >= ALIKE * longest.growth && members.length > 1)
      return { cause: "network", ranks: groups[longest.group]!.ranks };
    if (last === rank) return { cause: "compute", ranks: [rank] };
    rank = last;
  }
  return null;
}

/** Where a rank's waiting grew most; null where it did not grow. */
function longestWait(
  waits: Waits,
):
  | { group: number; peer: null; growth: number }
  | { group: -1; peer: Rank; growth: number }
  | null {
  let longest: ReturnType<typeof longestWait> = null;
  const least = LONGER * waits.growthMs;
  for (const [group, growth] of waits.groups)
    if (growth > least && growth > (longest?.growth ?? 0)) longest = { group, peer: null, growth };
  for (const [peer, growth] of waits.receives)
    if (growth > least && growth > (longest?.growth ?? 0)) longest = { group: -1, peer, growth };
  return longest;
}
