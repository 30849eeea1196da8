/**
 * What is compared. A slow rank is inside operators for less time than its peers: it leads them. A rank behind a slow wire has what it
 * sends on the wire for longer than its peers. And a communicator over a slow wire takes longer, once everybody is there, than those
 * that carry the like. All are distances from the median of the others.
 */
import { type Effect, effectOf } from "../../../maths/shift-odds.ts";
import type { Block, JudgedJob } from "./online-judge.ts";
import { distancesOf, type References, referencesAmong, referencesOf } from "./references.ts";

/** Index of each kind. */
export const LEADS = 0;
export const SENDERS = 1;
export const COMMUNICATORS = 2;

/** Of faults that a rank has, how many are of the wire that it sends through. */
const WIRES = 0.1;
/** What wires do by themselves only other wires tell: with fewer than so many communicators it is less probable that one is slow. */
const MANY_WIRES = 64;
/** A communicator that takes less of a block than this more is nobody's reason. */
const LEAST_COST = 0.01;
export interface Kind {
  readonly type: "rank" | "wire";
  readonly references: References;
  /** How far from its peers each item is (a rank, a communicator), by series of the references. */
  apart(this: void, block: Block): Float32Array;
  /** Places that an item is about. */
  placesOf(this: void, item: number): readonly number[];
  /** What healthy distances do from one minute to the next. */
  readonly usualChance: number;
  /** What faults add to a distance: less than the least nobody looks for. */
  readonly effect: Effect;
  /** A single block that is so far away is a spike. */
  readonly spike: number;
  /** How much rarer than slow ranks they are. */
  readonly logPrior: number;
  /** Whether a growth costs the job anything. */
  isFelt?(this: void, block: Block, item: number, growth: number): boolean;
}

export function kindsOf(job: JudgedJob): readonly Kind[] {
  return [leads(job), senders(job), communicators(job)];
}

function leads(job: JudgedJob): Kind {
  const references = referencesOf(job);
  return {
    type: "rank",
    references,
    apart: ({ inside }) => distancesOf(references, inside),
    placesOf: (place) => [place],
    usualChance: 0.02,
    effect: effectOf(0.04, 0.3),
    spike: 0.1,
    logPrior: 0,
  };
}

function senders(job: JudgedJob): Kind {
  // Who sends how much differs from rank to rank in any group: that of all will do.
  const references = referencesOf({ ...job, groups: [] });
  return {
    type: "wire",
    references,
    apart: ({ onWire }) => negated(distancesOf(references, onWire)),
    placesOf: (place) => [place],
    usualChance: 0.05,
    effect: effectOf(0.1, 0.3),
    spike: 0.3,
    logPrior: Math.log(WIRES),
  };
}

/** In logarithms: a wire makes everything over it longer by a factor. */
function communicators({ ranks, groups }: JudgedJob): Kind {
  const references = referencesAmong(groups.length, likes(groups));
  const many = Math.max(1, groups.length);
  const logs = new Float32Array(groups.length);
  return {
    type: "wire",
    references,
    apart({ wireMs, wireCount }) {
      for (let w = 0; w < logs.length; w++)
        logs[w] = wireCount[w]! > 0 && wireMs[w]! > 0 ? Math.log(wireMs[w]!) : NaN;
      return negated(distancesOf(references, logs));
    },
    placesOf: (group) => groups[group]!.places,
    usualChance: 0.2,
    effect: effectOf(0.15, 0.7),
    spike: 0.7,
    logPrior: Math.log((WIRES * ranks.length * Math.min(1, many / MANY_WIRES) ** 2) / many),
    isFelt: ({ wireMs, wireCount, lengthMs }, group, growth) =>
      (wireMs[group]! * wireCount[group]! * (1 - Math.exp(-growth))) / lengthMs > LEAST_COST,
  };
}

/** Communicators that carry the like: of as many members, and of a name that differs in numbers alone. */
function likes(
  groups: JudgedJob["groups"],
): { readonly name: string; readonly places: number[] }[] {
  const found = new Map<string, { readonly name: string; readonly places: number[] }>();
  for (const [group, { name, places }] of groups.entries()) {
    // NCCL's own ids say nothing.
    const stem = /^[0-9a-f]{16}$/.test(name) ? "" : name.replaceAll(/\d+/g, "");
    const key = `${stem} of ${places.length}`;
    const like = found.get(key) ?? { name: `communicators of ${places.length}`, places: [] };
    found.set(key, like);
    like.places.push(group);
  }
  return [...found.values()];
}

function negated(distances: Float32Array): Float32Array {
  for (let s = 0; s < distances.length; s++) distances[s] = -distances[s]!;
  return distances;
}
