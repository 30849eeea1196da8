/** Slow transfers → slow links, or the NIC of a rank whose transfers are slow with every peer. */
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
  /** Measured by transfers inside a machine, while one end's machine is unknown: the way may be another. */
  readonly mayBeFar: boolean;
}

/** Networks vary more than GPUs: what a fifth more costs is seen in the job, too. */
export const SLOWER = 1.2;

interface Tested {
  tests: number;
  readonly slow: Pick<LinkVerdict, "ratio" | "ms" | "usualMs" | "mayBeFar">[];
}

export function slowLinks(moved: readonly Comparable<Link>[]): {
  readonly links: readonly LinkVerdict[];
  readonly nics: ReadonlyMap<Rank, LinkVerdict>;
} {
  const byLink = new Map<string, Tested & { readonly ranks: readonly Rank[] }>();
  const testedOf = ({ from, to }: Link): Tested => {
    const ranks = from < to ? [from, to] : [to, from];
    const key = ranks.join();
    let tested = byLink.get(key);
    if (!tested) {
      tested = { ranks, tests: 0, slow: [] };
      byLink.set(key, tested);
    }
    return tested;
  };
  for (const comparable of moved) {
    for (const { who } of comparable.samples) testedOf(who).tests++;
    for (const { sample, ratio, usualMs } of slowOnes(comparable, SLOWER))
      testedOf(sample.who).slow.push({
        ratio,
        ms: sample.ms,
        usualMs,
        mayBeFar: sample.isGuest === true && comparable.isInside === true,
      });
  }
  // A link is tested at several sizes and in two topologies; a small transfer's time may be the host's.
  const slow = [...byLink.values()].filter((one) => 2 * one.slow.length > one.tests);
  const linksOf = new Map<Rank, number>();
  for (const { ranks } of byLink.values())
    for (const rank of ranks) linksOf.set(rank, (linksOf.get(rank) ?? 0) + 1);
  const slowOf = new Map<Rank, typeof slow>();
  for (const one of slow)
    for (const rank of one.ranks) slowOf.set(rank, [...(slowOf.get(rank) ?? []), one]);
  const nics = new Map<Rank, LinkVerdict>();
  for (const [rank, list] of slowOf) {
    const isAll = list.length === linksOf.get(rank)! && list.length >= 2;
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
