/** Operators that a story has asked for, and own times of those ranks. */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { OwnTime, OwnTimesOf } from "./own-times.ts";
import { ownExcess } from "./own-times.ts";
import { rankCalls, type RankCalls } from "./rank-calls.ts";
import type { Walker } from "./walk.ts";

export interface OperatorsAsked {
  /** In their order; null where it has none. */
  operatorsOf(this: void, ranks: readonly Rank[]): Promise<readonly (RankOperators | null)[]>;
  readonly ownTimesOf: OwnTimesOf;
  /** Ranks that may be fetched in all, and members of one group. */
  readonly mostRanks: number;
  readonly mostMembers: number;
}

export const MOST_BARS = 64;

export class FetchedRanks {
  readonly #asked: OperatorsAsked;
  readonly #operators = new Map<Rank, RankOperators | null>();
  #own: ReadonlyMap<Rank, OwnTime> | null = null;

  constructor(asked: OperatorsAsked) {
    this.#asked = asked;
  }

  async fetch(ranks: readonly Rank[]): Promise<readonly (RankOperators | null)[]> {
    const room = this.#asked.mostRanks - this.#operators.size;
    const wanted = [...new Set(ranks)].filter((rank) => !this.#operators.has(rank)).slice(0, room);
    if (wanted.length > 0) {
      const got = await this.#asked.operatorsOf(wanted);
      for (const [k, rank] of wanted.entries()) this.#operators.set(rank, got[k] ?? null);
      this.#own = null;
    }
    return ranks.map((rank) => this.#operators.get(rank) ?? null);
  }

  own(): ReadonlyMap<Rank, OwnTime> {
    this.#own ??= this.#asked.ownTimesOf(
      [...this.#operators.values()].filter((one) => one !== null),
    );
    return this.#own;
  }
}

export function walkerOf(
  job: Job,
  known: FetchedRanks,
  blamed: readonly Rank[],
  healthy: readonly number[],
  mostMembers: number,
): Walker {
  const calls = new Map<Rank, RankCalls>();
  const near = mates(job, blamed);
  const accused = new Set(blamed);
  return {
    groups: job.groups,
    healthy,
    async calls(ranks) {
      const fetched = await known.fetch(ranks);
      return fetched.map((operators, k) => {
        if (!operators) return null;
        const made = calls.get(ranks[k]!) ?? rankCalls(operators, job.groups, healthy);
        calls.set(ranks[k]!, made);
        return made;
      });
    },
    ownExcessMs: (rank, iteration) => ownExcess(known.own(), rank, iteration, healthy),
    // Of a large group: who asks, who is blamed, who works beside them, and a sample of the others.
    chosen(members, from) {
      if (members.length <= mostMembers) return members;
      const first = members.filter((rank) => rank === from || accused.has(rank));
      const beside = members.filter((rank) => near.has(rank));
      const some = [...first, ...spread(beside, mostMembers / 2), ...spread(members, mostMembers)];
      const kept = new Set([...new Set(some)].slice(0, mostMembers));
      return members.filter((rank) => kept.has(rank));
    },
  };
}

/** Groups of most of the job bring nobody together. */
export function isOwnGroup(job: Job, ranks: readonly Rank[]): boolean {
  return 2 * ranks.length <= Math.max(job.worldSize, job.ranks.size);
}

/** Who shares a group with some ranks, themselves included. */
export function mates(job: Job, ranks: readonly Rank[]): Set<Rank> {
  const some = new Set(ranks);
  const near = new Set(ranks);
  for (const { ranks: members } of job.groups)
    if (isOwnGroup(job, members) && members.some((rank) => some.has(rank)))
      for (const rank of members) near.add(rank);
  return near;
}

/** Evenly over a list. */
export function spread(ranks: readonly Rank[], most: number): Rank[] {
  if (ranks.length <= most) return [...ranks];
  return Array.from({ length: most }, (_, k) => ranks[Math.floor((k * ranks.length) / most)]!);
}
