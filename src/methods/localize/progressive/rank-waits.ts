/**
 * Where a rank on the path waits. One iteration of its log is read whole, to learn what it runs; of the others
 * only operators in which a rank can wait (receives, collectives), and of a group with many a sample, the same
 * on all members.
 */
import { median } from "../../../maths/robust.ts";
import type { Rank } from "../../../model/ids.ts";
import { growth, iterationsOf, sums } from "./series.ts";
import { COLLECTIVE, RECEIVING, type OperatorSource, type Split } from "./source.ts";

/** Time in the collectives of one group, or in the receives from one peer. */
export interface Wait {
  /** The group's id, or the sender. */
  readonly of: number;
  readonly isGroup: boolean;
  /** Which of the group's (the peer's) operators of an iteration were read. */
  readonly nth: readonly number[];
  /** By iteration, normal ones first: time in all its operators, as those that were read tell. */
  readonly series: Float64Array;
  /** How many operators it has in an iteration. */
  readonly count: number;
  /** Growth of all its operators, milliseconds an iteration; and of each that was read. */
  readonly growthMs: number;
  readonly grew: readonly number[];
  /** The usual time in each that was read, milliseconds. */
  readonly usualMs: readonly number[];
}

export interface RankWaits {
  readonly rank: Rank;
  readonly waits: readonly Wait[];
}

export function rankWaits(
  source: OperatorSource,
  rank: Rank,
  split: Split,
  mostPlaces: number,
): RankWaits {
  const iterations = iterationsOf(split);
  const { kind, group, peer } = source.iterationOf(rank, iterations[0]!);
  const found = new Map<string, Found>();
  let received = -1;
  for (let place = 0; place < kind.length; place++) {
    const isGroup = kind[place] === COLLECTIVE;
    if (!isGroup && kind[place] !== RECEIVING) continue;
    if (!isGroup) received = place;
    const of = isGroup ? group[place]! : peer[place]!;
    if (of < 0) continue;
    const key = `${isGroup ? "g" : "r"}${of}`;
    const known = found.get(key);
    if (!known) found.set(key, { of, isGroup, places: [place], heads: [0] });
    else {
      if (received > known.places.at(-1)!) known.heads.push(known.places.length);
      known.places.push(place);
    }
  }
  const read = [...found.values()].map((each) => ({ ...each, ...chosen(each, mostPlaces) }));
  const places = read.flatMap((each) => each.nth.map((n) => each.places[n]!));
  const durations = source.placesOf(rank, places, iterations);
  let first = 0;
  const waits = read.map(({ of, isGroup, places: all, nth, weights }): Wait => {
    const here = nth.map((_, i) => first + i);
    first += nth.length;
    const each = here.map((place) => sums(durations, places.length, [place]));
    const series = new Float64Array(iterations.length);
    for (const [n, one] of each.entries())
      for (let i = 0; i < series.length; i++) series[i]! += weights[n]! * one[i]!;
    return {
      of,
      isGroup,
      nth,
      series,
      count: all.length,
      growthMs: growth(series, split),
      grew: each.map((one) => growth(one, split)),
      usualMs: each.map((one) => median(one.subarray(0, split.normal.length))),
    };
  });
  return { rank, waits };
}

interface Found {
  readonly of: number;
  readonly isGroup: boolean;
  readonly places: number[];
  /** Of its operators, those that are the first behind a receive. */
  readonly heads: number[];
}

/**
 * Which operators to read, and for how many each stands. The first behind a receive are where others wait for a
 * rank whose receive took longer; a sample over all would miss them, so they are a stratum of their own.
 */
function chosen(
  { places, heads, isGroup }: Found,
  most: number,
): { nth: readonly number[]; weights: readonly number[] } {
  const { length: count } = places;
  if (count <= most || !isGroup || heads.length <= 1) {
    const nth = sampled(count, most);
    return { nth, weights: nth.map(() => count / nth.length) };
  }
  const others = Array.from({ length: count }, (_, n) => n).filter((n) => !heads.includes(n));
  const first = sampled(heads.length, most).map((i) => heads[i]!);
  const rest = sampled(others.length, most / 2).map((i) => others[i]!);
  const weightOf = new Map<number, number>();
  for (const n of first) weightOf.set(n, heads.length / first.length);
  for (const n of rest) weightOf.set(n, others.length / rest.length);
  const nth = [...weightOf.keys()].sort((a, b) => a - b);
  return { nth, weights: nth.map((n) => weightOf.get(n)!) };
}

/**
 * Which of `count` operators to read. Not every kth: layers repeat, and a stride would see always the same
 * operator of a layer; so one of each stretch of k, at a place that jumps about (golden ratio).
 */
export function sampled(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, n) => n);
  const stretch = count / most;
  const places = Array.from({ length: Math.floor(most) }, (_, i) =>
    Math.floor((i + ((i * 0.618_033_988_75 + 0.5) % 1)) * stretch),
  );
  return [...new Set(places)];
}
