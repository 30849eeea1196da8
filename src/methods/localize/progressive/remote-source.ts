/**
 * Operators that lie with the agents of a running job, as an OperatorSource. What it has not got it writes down, and
 * answers that it does not know; the caller of the search fetches all that is written down and runs it again from the
 * start, until nothing is wanted any more. So the search stays a plain function, and one round trip serves the next hop
 * of all pivots and all groups that are looked at. A search in the dark ends early: nothing follows from NaN.
 */
import type { Rank } from "../../../model/ids.ts";
import {
  RECEIVING,
  RECORD_BYTES,
  SENDING,
  type Durations,
  type OperatorSource,
  type RankIteration,
} from "./source.ts";

/** Which operators of a rank: at places of its iteration, or the nth of a group. */
type Selection =
  | { readonly places: readonly number[] }
  | { readonly group: number; readonly nth: readonly number[] };

export type Want =
  | { readonly what: "program"; readonly rank: Rank }
  | {
      readonly what: "durations";
      readonly rank: Rank;
      readonly of: Selection;
      readonly iterations: readonly number[];
      readonly key: string;
    };

/** A place at which nothing is. */
const NONE = -1;
const NOTHING: RankIteration = {
  kind: new Uint8Array(0),
  group: new Int32Array(0),
  peer: new Int32Array(0),
};

export class RemoteSource implements OperatorSource {
  readonly worldSize: number;
  readonly #programs = new Map<Rank, RankIteration>();
  readonly #durations = new Map<string, Durations>();
  readonly #absent = new Set<Rank>();
  readonly #all: readonly Rank[];
  readonly #has: ReadonlySet<Rank>;
  #wants = new Map<string, Want>();
  #records = 0;
  #missed = 0;

  /** `ranks`: those whose agents can be asked. */
  constructor(ranks: readonly Rank[], worldSize: number) {
    this.#all = ranks;
    this.#has = new Set(ranks);
    this.worldSize = worldSize;
  }

  get ranks(): readonly Rank[] {
    return this.#absent.size === 0
      ? this.#all
      : this.#all.filter((rank) => !this.#absent.has(rank));
  }

  get bytes(): number {
    return this.#records * RECORD_BYTES;
  }

  /** The caller that fetches knows how much there is. */
  get totalBytes(): number {
    return NaN;
  }

  get missed(): number {
    return this.#missed;
  }

  has(rank: Rank): boolean {
    return this.#has.has(rank) && !this.#absent.has(rank);
  }

  /** What has to be fetched before the next attempt; where it is nothing, the last one had all it asked for. */
  takeWants(): Want[] {
    const wants = [...this.#wants.values()];
    this.#wants = new Map();
    return wants;
  }

  giveProgram(rank: Rank, program: RankIteration): void {
    this.#programs.set(rank, program);
    this.#records += program.kind.length;
  }

  giveDurations(key: string, ms: Durations): void {
    this.#durations.set(key, ms);
    this.#records += ms.length;
  }

  /** Its agent does not answer: the rank left no operators, as far as the search goes. */
  giveUp(rank: Rank): void {
    this.#absent.add(rank);
  }

  wantPrograms(ranks: readonly Rank[]): void {
    for (const rank of ranks) this.#program(rank);
  }

  iterationOf(rank: Rank): RankIteration {
    return this.#program(rank);
  }

  placesOf(rank: Rank, places: readonly number[], iterations: readonly number[]): Durations {
    const [ms] = this.#ask([rank], { places }, places, `p${places.join()}`, iterations);
    return ms!;
  }

  collectivesOf(
    ranks: readonly Rank[],
    group: number,
    nth: readonly number[],
    iterations: readonly number[],
  ): Durations[] {
    return this.#ask(ranks, { group, nth }, nth, `g${group}:${nth.join()}`, iterations);
  }

  /** By their places in what the rank runs: its agent may know of the other side only where it sits in the group. */
  transfersOf(
    side: Rank,
    from: Rank,
    to: Rank,
    nth: readonly number[],
    iterations: readonly number[],
  ): Durations {
    const { kind, peer } = this.#program(side);
    const wanted = side === from ? SENDING : RECEIVING;
    const other = side === from ? to : from;
    const all = [...kind.keys()].filter((place) => kind[place] === wanted && peer[place] === other);
    const places = nth.map((n) => all[n] ?? NONE);
    return this.placesOf(side, places, iterations);
  }

  #program(rank: Rank): RankIteration {
    if (!this.has(rank)) return NOTHING;
    const known = this.#programs.get(rank);
    if (known) return known;
    this.#missed++;
    this.#wants.set(`program ${rank}`, { what: "program", rank });
    return NOTHING;
  }

  #ask(
    ranks: readonly Rank[],
    of: Selection,
    places: readonly number[],
    words: string,
    iterations: readonly number[],
  ): Durations[] {
    // Searches of single iterations read the same ones in another order: fetched once.
    const ascending = iterations.toSorted((a, b) => a - b);
    if (ascending.some((number, i) => number !== iterations[i])) {
      const order = iterations.map((number) => ascending.indexOf(number));
      const columns = this.#ask(ranks, of, places, words, ascending);
      return columns.map((ms) => reordered(ms, order, places.length));
    }
    // A search in the dark may ask for what cannot be: nobody needs to answer that.
    const canBe = places.some((place) => place >= 0);
    const suffix = ` ${words} ${iterations.join()}`;
    let unknown: Durations | null = null;
    return ranks.map((rank) => {
      const known = this.#durations.get(rank + suffix);
      if (known) return known;
      unknown ??= new Float64Array(iterations.length * places.length).fill(NaN);
      const key = rank + suffix;
      if (canBe && this.has(rank)) {
        this.#missed++;
        this.#wants.set(key, { what: "durations", rank, of, iterations, key });
      }
      return unknown;
    });
  }
}

/** `order`: the index in `ms` of each wanted iteration. */
function reordered(ms: Durations, order: readonly number[], places: number): Durations {
  const found = new Float64Array(ms.length);
  for (const [i, from] of order.entries())
    found.set(ms.subarray(from * places, (from + 1) * places), i * places);
  return found;
}
