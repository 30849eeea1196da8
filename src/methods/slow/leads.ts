/**
 * How far each rank leads: how much less it is inside operators than the others it is compared with, block by block. A slow rank is
 * the one that waits least; what its group has in common cancels out.
 */
import { groupBy, getOrInsert } from "../../base/group-by.ts";
import { type Account, othersMedian } from "./account.ts";

/** Leads of ranks over one reference each: several a rank. */
export interface LeadSeries {
  /** Of each series, what it is compared with. */
  readonly reference: readonly number[];
  readonly references: readonly Reference[];
  /** Series whose noise is alike: ranks of one role against as many others. */
  readonly kind: readonly number[];
  /** Series-major: series s in block k at s · blocks + k. */
  readonly lead: Float64Array;
  /** By place, the rank's series. */
  readonly of: readonly (readonly number[])[];
}

export interface Reference {
  /** In Account.groups. */
  readonly group: number;
  readonly places: Int32Array;
}

/** For a change of pace: the other members of each of a rank's groups. */
export function leadsInGroups(account: Account): LeadSeries {
  return seriesOf(
    account,
    account.groups.map(({ places }, group) => ({ group, places })),
  );
}

/** For what is slow since the record begins: those members alone that run the same program at the same place. */
export function leadsInRoles(account: Account): LeadSeries {
  const seen = new Set<string>();
  const references = account.groups.flatMap(({ places }, group) =>
    [...groupBy(places, (place) => account.roles[place]!).values()].flatMap((alike) => {
      const key = alike.join();
      if (alike.length < 2 || seen.has(key)) return [];
      seen.add(key);
      return [{ group, places: Int32Array.from(alike) }];
    }),
  );
  return seriesOf(account, references);
}

function seriesOf(account: Account, references: readonly Reference[]): LeadSeries {
  const { blocks, inside, roles, ranks } = account;
  const count = references.reduce((sum, { places }) => sum + places.length, 0);
  const lead = new Float64Array(count * blocks);
  const [reference, kind]: [number[], number[]] = [[], []];
  const of = ranks.map(() => [] as number[]);
  const kinds = new Map<string, number>();
  for (const [r, { places }] of references.entries()) {
    const others = othersMedian(inside, places, blocks);
    for (const [m, place] of places.entries()) {
      const s = reference.push(r) - 1;
      kind.push(getOrInsert(kinds, `${roles[place]} ${places.length}`, () => kinds.size));
      of[place]!.push(s);
      for (let k = 0; k < blocks; k++)
        lead[s * blocks + k] = others[m * blocks + k]! - inside[place * blocks + k]!;
    }
  }
  return { reference, references, kind, lead, of };
}
