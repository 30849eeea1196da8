/**
 * Whom each rank is compared with: the other members of each of its groups, and all ranks. A comparison is a series of distances: in
 * each block the median of the others, less the rank's own. Whatever all of a group share cancels.
 */
import type { JudgedJob } from "./online-judge.ts";

/** Members of a group that must have been heard of for one of them to be compared. */
const FEWEST_COMPARED = 2;
/** Of two ranks neither can be told from the other, unless nobody else is there. */
const FEWEST_OF_GROUP = 3;

interface ComparedGroup {
  readonly name: string;
  readonly places: Int32Array;
  /** Of each member: its series. */
  readonly series: Int32Array;
}

export interface References {
  /** Series of all ranks; those of a rank lie next to each other. */
  readonly count: number;
  /** By place: the first of its series; behind the last place their number. */
  readonly first: Int32Array;
  /** By series: index of its group. */
  readonly group: Int32Array;
  readonly groups: readonly ComparedGroup[];
}

export function referencesOf({ ranks, groups }: JudgedJob): References {
  const everybody = { name: "all ranks", places: [...ranks.keys()] };
  return referencesAmong(ranks.length, [everybody, ...groups]);
}

/** The same among items of any kind: `places` are their numbers, below `count`. */
export function referencesAmong(
  count: number,
  groups: readonly { readonly name: string; readonly places: readonly number[] }[],
): References {
  const found = new Map<string, { readonly name: string; readonly places: readonly number[] }>();
  for (const group of groups) {
    const places = [...new Set(group.places)].sort((a, b) => a - b);
    // Several communicators of the same ranks are one comparison.
    if (places.length >= FEWEST_OF_GROUP || places.length === count)
      if (!found.has(places.join())) found.set(places.join(), { name: group.name, places });
  }
  const sets = [...found.values()];
  const first = new Int32Array(count + 1);
  for (const { places } of sets) for (const place of places) first[place + 1]!++;
  for (let place = 0; place < count; place++) first[place + 1]! += first[place]!;
  const series = first[count]!;
  const group = new Int32Array(series);
  const next = first.slice();
  const compared = sets.map(({ name, places }, g) => ({
    name,
    places: Int32Array.from(places),
    series: Int32Array.from(places, (place) => {
      group[next[place]!] = g;
      return next[place]!++;
    }),
  }));
  return { count: series, first, group, groups: compared };
}

let scratch = new Float64Array(64);

/** By series; NaN of ranks that were not heard of. `values` by place. */
export function distancesOf({ count, groups }: References, values: Float32Array): Float32Array {
  const distances = new Float32Array(count).fill(NaN);
  for (const { places, series } of groups) {
    if (scratch.length < places.length) scratch = new Float64Array(places.length);
    let known = 0;
    for (let i = 0; i < places.length; i++) {
      const own = values[places[i]!]!;
      if (!Number.isNaN(own)) scratch[known++] = own;
    }
    if (known < FEWEST_COMPARED) continue;
    scratch.subarray(0, known).sort();
    // Without its own value the median is one, or between two, of the three in the middle.
    const half = (known - 1) >> 1;
    const isOdd = (known - 1) % 2 === 1;
    for (let i = 0; i < places.length; i++) {
      const own = values[places[i]!]!;
      if (Number.isNaN(own)) continue;
      const upper = scratch[own <= scratch[half]! ? half + 1 : half]!;
      const lower = isOdd ? upper : scratch[own <= scratch[half - 1]! ? half : half - 1]!;
      distances[series[i]!] = (lower + upper) / 2 - own;
    }
  }
  return distances;
}
