/** Finds the job's groups for operators that name them themselves: thousands of ranks ask, each for a few. */
import { groupBy } from "../../base/group-by.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { DumpGroup } from "../../model/operators.ts";

export class GroupFinder {
  /** By what is cheap to tell of name and members; the few that share it are compared whole. */
  readonly #candidates: ReadonlyMap<string, readonly Group[]>;
  readonly #byName: ReadonlyMap<string, readonly Group[]>;
  /** Name → rank → its only group of that name, -1 where it has several; made when first asked for. */
  readonly #ofRank = new Map<string, Map<Rank, number>>();

  constructor(groups: readonly Group[]) {
    this.#candidates = groupBy(groups, ({ name, ranks }) => cheapKey(name, ranks));
    this.#byName = groupBy(groups, ({ name }) => name);
  }

  /** -1 for none. A name alone serves where the source does not know the members, if the rank has one such group. */
  idOf({ name, ranks }: DumpGroup, rank: Rank): number {
    if (!ranks) return this.#named(name).get(rank) ?? -1;
    const same = this.#candidates.get(cheapKey(name, ranks));
    return same?.find((group) => areEqual(group.ranks, ranks))?.id ?? -1;
  }

  #named(name: string): ReadonlyMap<Rank, number> {
    let ids = this.#ofRank.get(name);
    if (!ids) {
      ids = new Map();
      for (const { id, ranks } of this.#byName.get(name) ?? [])
        for (const rank of ranks) ids.set(rank, (ids.get(rank) ?? id) === id ? id : -1);
      this.#ofRank.set(name, ids);
    }
    return ids;
  }
}

function cheapKey(name: string, ranks: readonly Rank[]): string {
  return `${name}|${ranks.length}|${ranks[0]}|${ranks.at(-1)}`;
}

/** Readers share lists between ranks where they can, and the job has the first of them. */
function areEqual(a: readonly Rank[], b: readonly Rank[]): boolean {
  return a === b || (a.length === b.length && a.every((rank, i) => rank === b[i]));
}
