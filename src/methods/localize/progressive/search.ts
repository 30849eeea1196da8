/**
 * From a few pivots along the waiting to who causes it (Holmes §4.3.2), reading as little as that takes: ranks on
 * the path nearly whole, of the members of a group only the operators in which the rank on the path came to wait.
 * A transfer is looked at from both sides, so that a slow link is no late sender.
 */
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import { median } from "../../../maths/robust.ts";
import { rankWaits, sampled, type RankWaits, type Wait } from "./rank-waits.ts";
import { growth, iterationsOf, least, ratio, sums } from "./series.ts";
import type { Durations, OperatorSource, Split } from "./source.ts";

export interface SearchOptions {
  readonly pivots: readonly Rank[];
  /** Operators of one group (or from one peer) read of a rank on the path; and of each member of the group. */
  readonly mostPlaces: number;
  readonly mostMemberPlaces: number;
  /** Members of a group that are asked; of a larger one a sample. */
  readonly mostMembers: number;
}

/** Of jobs that are small enough to read whole. */
export const READ_ALL: Omit<SearchOptions, "pivots"> = {
  mostPlaces: Infinity,
  mostMemberPlaces: Infinity,
  mostMembers: Infinity,
};

export const SEARCH_DEFAULTS: Omit<SearchOptions, "pivots"> = {
  mostPlaces: 16,
  mostMemberPlaces: 2,
  mostMembers: 640,
};

/** Where one search came to. */
export interface Arrival {
  /** "unseen": ranks that everybody waits for left no operators. */
  readonly cause: "compute" | "network" | "unseen";
  /** The slow rank; or the members of the group, or both sides of the link; or who is not seen. */
  readonly ranks: readonly Rank[];
  /** The group that communicates slowly; -1 for a link, and for computing. */
  readonly group: number;
  readonly path: readonly Rank[];
  /**
   * What speaks for it, by iteration, normal ones first, milliseconds: how long others waited for the rank, or
   * how long the communication took when all were there. Null where the pivot itself waits for nobody.
   */
  readonly evidence: Float64Array | null;
}

/** Shares of the slow-down above which time is taken for waiting, and of the largest growth for all alike. */
const LONGER = 0.3;
const ALIKE = 0.6;
const MOST_HOPS = 64;
/** Of groups with more members only the operators are read in which most was waited. */
const LARGE = 16;
/** Of a circle of transfers, the slow one takes so much longer than before with both sides there. */
const SLOW_TRANSFER = 1.2;

interface Hop {
  readonly pair: readonly [Rank, Rank];
  readonly floor: Float64Array;
  readonly growthMs: number;
}

export class Searcher {
  readonly #source: OperatorSource;
  readonly #groups: readonly Group[];
  readonly #split: Split;
  readonly #options: SearchOptions;
  readonly #waits = new Map<Rank, RankWaits>();
  readonly #members = new Map<string, Durations[]>();
  readonly #growthMs: number;

  constructor(
    source: OperatorSource,
    groups: readonly Group[],
    split: Split,
    options: SearchOptions,
  ) {
    this.#source = source;
    this.#groups = groups;
    this.#split = split;
    this.#options = options;
    this.#growthMs = median(split.slowMs) - median(split.normalMs);
  }

  /** Waiting of the ranks read so far: what groups there are, and in which of their operators nobody waits. */
  get read(): readonly RankWaits[] {
    return [...this.#waits.values()];
  }

  from(pivot: Rank): Arrival | null {
    const path: Rank[] = [];
    const transfers: Hop[] = [];
    let rank = pivot;
    let evidence: Float64Array | null = null;
    while (path.length < MOST_HOPS) {
      if (path.includes(rank)) return this.#slowestTransfer(transfers, path);
      path.push(rank);
      const longest = this.#longestWait(rank);
      if (!longest) return { cause: "compute", ranks: [rank], group: -1, path, evidence };
      if (longest.isGroup) {
        const last = this.#lastOf(rank, longest);
        if (last.isNetwork) {
          const { ranks } = this.#groups[longest.of]!;
          const away = ranks.filter((member) => !this.#source.has(member));
          const known = { group: longest.of, path, evidence: last.evidence };
          // Everybody waits alike: for the network, or for one who left nothing to be seen by.
          return away.length > 0
            ? { cause: "unseen", ranks: away, ...known }
            : { cause: "network", ranks, ...known };
        }
        evidence = last.evidence;
        if (last.rank === rank)
          return { cause: "compute", ranks: [rank], group: -1, path, evidence };
        rank = last.rank;
        continue;
      }
      if (!this.#source.has(longest.of))
        return { cause: "unseen", ranks: [longest.of], group: -1, path, evidence: longest.series };
      const hop = this.#transfer(rank, longest);
      transfers.push(hop);
      if (growth(hop.floor, this.#split) >= ALIKE * hop.growthMs) return network(hop, path);
      evidence = longest.series;
      rank = longest.of;
    }
    return null;
  }

  #longestWait(rank: Rank): Wait | null {
    const known = this.#whole(this.#waits, rank, () =>
      rankWaits(this.#source, rank, this.#split, this.#options.mostPlaces),
    );
    let longest: Wait | null = null;
    for (const wait of known.waits)
      if (wait.growthMs > LONGER * this.#growthMs && wait.growthMs > (longest?.growthMs ?? 0))
        longest = wait;
    return longest;
  }

  /** Who of a group came last: whose time grew least in the operators in which this rank's grew. */
  #lastOf(rank: Rank, wait: Wait): { rank: Rank; isNetwork: boolean; evidence: Float64Array } {
    const { ranks } = this.#groups[wait.of]!;
    const all = ranks.filter((member) => this.#source.has(member));
    const { mostMemberPlaces, mostMembers } = this.#options;
    const nth = this.#grownMost(wait, all.length > LARGE ? mostMemberPlaces : wait.nth.length);
    const members = sampled(all.length, mostMembers).map((m) => all[m]!);
    if (!members.includes(rank)) members.push(rank);
    const durations = this.#membersOf(members, wait.of, nth);
    const own = members.indexOf(rank);
    const floor = sums(least(durations), nth.length);
    const ownGrowth = growth(sums(durations[own]!, nth.length), this.#split);
    if (growth(floor, this.#split) >= ALIKE * ownGrowth && ranks.length > 1)
      return { rank, isNetwork: true, evidence: floor };
    // Together first, which is more robust; where different members came last in different operators, the one
    // operator in which the rank's time grew most.
    let found = leastGrown(durations, nth.length, null, this.#split);
    if (found.growthMs >= ALIKE * ownGrowth)
      found = leastGrown(
        durations,
        nth.length,
        this.#mostGrown(durations[own]!, nth.length),
        this.#split,
      );
    const evidence = found.series[own]!.map((ms, i) => ms - found.series[found.at]![i]!);
    return { rank: members[found.at]!, isNetwork: false, evidence };
  }

  /** Pivots that come to the same group ask the same of it. */
  #membersOf(members: readonly Rank[], group: number, nth: readonly number[]): Durations[] {
    return this.#whole(this.#members, `${group} ${nth.join()} ${members.length}`, () =>
      this.#source.collectivesOf(members, group, nth, iterationsOf(this.#split)),
    );
  }

  /** Worked out once, unless something of it is not there yet: then it is asked for again. */
  #whole<Key, Value>(all: Map<Key, Value>, key: Key, work: () => Value): Value {
    const known = all.get(key);
    if (known) return known;
    const { missed } = this.#source;
    const value = work();
    if (this.#source.missed === missed) all.set(key, value);
    return value;
  }

  #mostGrown(durations: Durations, places: number): number[] {
    const grew = Array.from({ length: places }, (_, p) =>
      growth(sums(durations, places, [p]), this.#split),
    );
    return [grew.indexOf(Math.max(...grew))];
  }

  #grownMost({ nth, grew }: Wait, most: number): number[] {
    if (nth.length <= most) return [...nth];
    const order = nth.map((_, i) => i).sort((a, b) => grew[b]! - grew[a]!);
    return order
      .slice(0, most)
      .map((i) => nth[i]!)
      .sort((a, b) => a - b);
  }

  #transfer(rank: Rank, wait: Wait): Hop {
    const { nth } = wait;
    const iterations = iterationsOf(this.#split);
    const sides = [wait.of, rank].map((side) =>
      this.#source.transfersOf(side, wait.of, rank, nth, iterations),
    );
    const floor = sums(least(sides), nth.length);
    return { pair: [wait.of, rank], floor, growthMs: growth(wait.series, this.#split) };
  }

  /** Ranks that wait for each other in a circle wait for what lies between two of them. */
  #slowestTransfer(transfers: readonly Hop[], path: readonly Rank[]): Arrival | null {
    let slowest: Hop | null = null;
    for (const hop of transfers)
      if (!slowest || ratio(hop.floor, this.#split) > ratio(slowest.floor, this.#split))
        slowest = hop;
    return slowest && ratio(slowest.floor, this.#split) >= SLOW_TRANSFER
      ? network(slowest, path)
      : null;
  }
}

/** The member whose time grew least, in all operators read or in some of them. */
function leastGrown(
  durations: readonly Durations[],
  places: number,
  of: readonly number[] | null,
  split: Split,
): { at: number; growthMs: number; series: Float64Array[] } {
  const series = durations.map((each) => sums(each, places, of ?? undefined));
  const grew = series
    .map((each) => growth(each, split))
    .map((ms) => (Number.isNaN(ms) ? Infinity : ms));
  let at = 0;
  for (let m = 1; m < grew.length; m++) if (grew[m]! < grew[at]!) at = m;
  return { at, growthMs: grew[at]!, series };
}

function network({ pair, floor }: Hop, path: readonly Rank[]): Arrival {
  const ranks = [...pair].sort((a, b) => a - b);
  return { cause: "network", ranks, group: -1, path, evidence: floor };
}
