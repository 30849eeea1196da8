/** Slow products → slow GPUs: slow at most of what they were given, or at one type of number alone. */
import { groupBy } from "../../base/group-by.ts";
import { largest } from "../../base/numbers.ts";
import type { Rank } from "../../model/ids.ts";
import type { Comparable } from "./measurements.ts";
import { slowOnes, type Slow } from "./slow-samples.ts";

/** Healthy GPUs of one kind differ by some percent (FLARE's underclocked ones by 14 % and more). */
export const SLOWER = 1.1;
/** Fewer tests say so, and of many ranks one is always the slowest: a gap has to lie between it and all others. */
const APART = 1.2;

interface SlowGpus {
  readonly slow: ReadonlyMap<Rank, readonly Slow<Rank>[]>;
  /** Slow at products of one type, as fast as its peers at the others. */
  readonly atOneType: readonly {
    readonly rank: Rank;
    readonly dtype: string;
    readonly list: readonly Slow<Rank>[];
  }[];
}

export function slowGpus(gemms: readonly Comparable<Rank>[]): SlowGpus {
  const slow = slowAtMost(gemms, slowOf);
  const types = groupBy(gemms, ({ dtype }) => dtype ?? "");
  const atOneType = [...types].flatMap(([dtype, own]) =>
    [...slowAtMost(own, apartOf)]
      .filter(([rank]) => !slow.has(rank))
      .map(([rank, list]) => ({ rank, dtype, list })),
  );
  return { slow, atOneType };
}

function slowOf(comparable: Comparable<Rank>): Slow<Rank>[] {
  return slowOnes(comparable, SLOWER);
}

function apartOf(comparable: Comparable<Rank>): Slow<Rank>[] {
  const slow = slowOnes(comparable, APART);
  const those = new Set(slow.map(({ sample }) => sample.who));
  const others = comparable.samples.filter(({ who }) => !those.has(who)).map(({ ms }) => ms);
  const most = largest(others, 0);
  return slow.filter(({ sample }) => sample.ms >= APART * most && sample.leastMs > most);
}

function slowAtMost(
  gemms: readonly Comparable<Rank>[],
  find: (comparable: Comparable<Rank>) => Slow<Rank>[],
): Map<Rank, Slow<Rank>[]> {
  const slow = new Map<Rank, Slow<Rank>[]>();
  const tests = new Map<Rank, number>();
  for (const comparable of gemms) {
    for (const { who } of comparable.samples) tests.set(who, (tests.get(who) ?? 0) + 1);
    for (const one of find(comparable))
      slow.set(one.sample.who, [...(slow.get(one.sample.who) ?? []), one]);
  }
  return new Map([...slow].filter(([rank, list]) => 2 * list.length > tests.get(rank)!));
}
