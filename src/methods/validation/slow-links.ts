/** Slow transfers → slow links, or the NIC of a rank whose transfers are slow with every peer. */
import { getOrInsert, groupBy } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Comparable, Link } from "./measurements.ts";
import { slowOnes } from "./slow-samples.ts";

export interface LinkVerdict {
  /** Both ends, ascending; of a NIC its rank alone. */
  readonly ranks: readonly Rank[];
  readonly ratio: number;
  readonly ms: number;
  readonly usualMs: number;
  readonly tests: number;
  /** Of several rounds of tests, in how many it was slow. */
  readonly rounds?: { readonly slow: number; readonly of: number };
  /** Measured by transfers inside a machine, while one end's machine is unknown: the way may be another. */
  readonly mayBeFar: boolean;
}

/** Networks vary more than GPUs: what a fifth more costs is seen in the job, too. */
export const SLOWER = 1.2;

interface Tested {
  tests: number;
  readonly slow: Pick<LinkVerdict, "ratio" | "ms" | "usualMs" | "mayBeFar">[];
}

interface SlowLinks {
  readonly links: readonly LinkVerdict[];
  readonly nics: ReadonlyMap<Rank, LinkVerdict>;
}

/** Tests after several iterations each tell for themselves: what is slow now and then is slow in some of them. */
export function slowLinks(moved: readonly Comparable<Link>[]): SlowLinks {
  const rounds = [...groupBy(moved, ({ iteration }) => iteration).values()];
  if (rounds.length <= 1) return slowNow(moved);
  const found = rounds.map(slowNow);
  const links = gathered(
    found.flatMap((one) => one.links),
    rounds.length,
  );
  const nics = gathered(
    found.flatMap((one) => [...one.nics.values()]),
    rounds.length,
  );
  const most = Math.max(0, ...[...links, ...nics].map(excessOf));
  const isMuch = (one: LinkVerdict): boolean => excessOf(one) >= OF_MOST * most;
  return {
    links: links.filter(isMuch),
    nics: new Map(nics.filter(isMuch).map((one) => [one.ranks[0]!, one])),
  };
}

/** Beside what costs most, less than this share of it is a hiccup. */
const OF_MOST = 0.5;

function excessOf({ ms, usualMs, rounds }: LinkVerdict): number {
  return (ms - usualMs) * (rounds?.slow ?? 1);
}

function gathered(all: readonly LinkVerdict[], of: number): LinkVerdict[] {
  return [...groupBy(all, ({ ranks }) => ranks.join()).values()].map((list) => ({
    ranks: list[0]!.ranks,
    ratio: median(list.map(({ ratio }) => ratio)),
    ms: median(list.map(({ ms }) => ms)),
    usualMs: median(list.map(({ usualMs }) => usualMs)),
    tests: list.reduce((sum, { tests }) => sum + tests, 0),
    rounds: { slow: list.length, of },
    mayBeFar: list.some(({ mayBeFar }) => mayBeFar),
  }));
}

function slowNow(moved: readonly Comparable<Link>[]): SlowLinks {
  const byLink = new Map<string, Tested & { readonly ranks: readonly Rank[]; isInside: boolean }>();
  const testedOf = ({ from, to }: Link, isInside: boolean): Tested => {
    const ranks = from < to ? [from, to] : [to, from];
    const key = ranks.join();
    const tested = getOrInsert(byLink, key, () => ({ ranks, tests: 0, slow: [], isInside }));
    return tested;
  };
  for (const comparable of moved) {
    const isInside = comparable.isInside === true;
    for (const { who } of comparable.samples) testedOf(who, isInside).tests++;
    for (const { sample, ratio, usualMs } of slowOnes(comparable, SLOWER))
      testedOf(sample.who, isInside).slow.push({
        ratio,
        ms: sample.ms,
        usualMs,
        mayBeFar: sample.isGuest === true && isInside,
      });
  }
  // A link is tested at several sizes and in two topologies; a small transfer's time may be the host's.
  const slow = [...byLink.values()].filter((one) => 2 * one.slow.length > one.tests);
  // What goes inside a machine goes through no NIC; of a rank that was tested there alone it is all that is known.
  const perRank = (all: Iterable<(typeof slow)[number]>): Map<Rank, (typeof slow)[number][]> => {
    const links = new Map<Rank, (typeof slow)[number][]>();
    for (const one of all)
      for (const rank of one.ranks) links.set(rank, [...(links.get(rank) ?? []), one]);
    return links;
  };
  const outwards = (links: readonly (typeof slow)[number][]): readonly (typeof slow)[number][] => {
    const outside = links.filter(({ isInside }) => !isInside);
    return outside.length > 0 ? outside : links;
  };
  const linksOf = perRank(byLink.values());
  const slowOf = perRank(slow);
  const nics = new Map<Rank, LinkVerdict>();
  for (const [rank, all] of slowOf) {
    const links = outwards(linksOf.get(rank)!);
    const list = links.filter((one) => all.includes(one));
    const isAll = list.length === links.length && list.length >= 2;
    const othersAreFine = list.every(({ ranks }) => {
      const other = ranks.find((end) => end !== rank)!;
      return slowOf.get(other)!.length === 1;
    });
    if (isAll && othersAreFine) nics.set(rank, verdictOf([rank], list));
  }
  const links = slow
    .filter(({ ranks }) => !ranks.some((rank) => nics.has(rank)))
    .map((one) => verdictOf(one.ranks, [one]));
  return { links, nics };
}

function verdictOf(ranks: readonly Rank[], list: readonly Tested[]): LinkVerdict {
  const slow = list.flatMap((one) => one.slow);
  return {
    ranks,
    ratio: median(slow.map(({ ratio }) => ratio)),
    ms: median(slow.map(({ ms }) => ms)),
    usualMs: median(slow.map(({ usualMs }) => usualMs)),
    tests: slow.length,
    mayBeFar: slow.some(({ mayBeFar }) => mayBeFar),
  };
}
