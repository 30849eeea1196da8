/**
 * Ranks' operators as an OperatorSource: a rank is fetched when the search first asks for it. Collectives are matched
 * by their sequence number where the recorder has one, because ranks may cut iterations at different operators of a
 * group; transfers by their place in the iteration.
 */
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import type { RankOperators, RankOperatorSource } from "../../../model/rank-operators.ts";
import {
  COLLECTIVE,
  RECEIVING,
  RECORD_BYTES,
  SENDING,
  type Durations,
  type OperatorSource,
  type RankIteration,
} from "./source.ts";

/** One rank's operators by what they are, each list in the order of issue. */
interface RankIndex {
  readonly operators: RankOperators;
  /** Number of an iteration → its place. */
  readonly places: ReadonlyMap<number, number>;
  /** Group id → its collectives. */
  readonly collectives: ReadonlyMap<number, Int32Array>;
  /** "s12", "r12": transfers to and from a rank. */
  readonly transfers: ReadonlyMap<string, Int32Array>;
}

export class FetchedSource implements OperatorSource {
  readonly worldSize: number;
  readonly ranks: readonly Rank[];
  readonly #source: RankOperatorSource;
  readonly #groups: readonly Group[];
  readonly #indexes = new Map<Rank, RankIndex | null>();
  readonly #present: ReadonlySet<Rank>;
  /** "group iteration" → sequence number of its first collective, as the first rank asked has it. */
  readonly #first = new Map<string, number>();
  #records = 0;
  #allRecords = 0;
  #mismatches = 0;

  constructor(source: RankOperatorSource, groups: readonly Group[], worldSize: number) {
    this.#source = source;
    this.#groups = groups;
    this.ranks = source.ranks;
    this.#present = new Set(source.ranks);
    this.worldSize = worldSize;
  }

  get bytes(): number {
    return this.#records * RECORD_BYTES;
  }

  /** As far as ranks were fetched: the others are taken to have as much. */
  get totalBytes(): number {
    const fetched = Math.max(1, this.#indexes.size);
    return (this.#allRecords / fetched) * this.ranks.length * RECORD_BYTES;
  }

  /** Operators that a member should have and does not. */
  get mismatches(): number {
    return this.#mismatches;
  }

  has(rank: Rank): boolean {
    return this.#present.has(rank) && this.#indexOf(rank) !== null;
  }

  iterationOf(rank: Rank, iteration: number): RankIteration {
    const index = this.#indexOf(rank);
    // A ring that does not go back so far: iterations are alike, and this one asks only what a rank runs.
    const place = index?.places.get(iteration) ?? (index?.operators.from.length ?? 0) - 1;
    if (!index || place < 0)
      return { kind: new Uint8Array(0), group: new Int32Array(0), peer: new Int32Array(0) };
    const { ops, groupIds, from, to } = index.operators;
    const [first, behind] = [from[place]!, to[place]!];
    const kind = new Uint8Array(behind - first);
    const group = new Int32Array(behind - first).fill(-1);
    const peer = new Int32Array(behind - first).fill(-1);
    for (let op = first; op < behind; op++) {
      const id = groupIds[ops.group[op]!] ?? -1;
      const at = op - first;
      if (ops.isP2p[op] === 0) group[at] = id;
      else {
        kind[at] = ops.isSend[op] === 1 ? SENDING : RECEIVING;
        peer[at] = this.#groups[id]?.ranks[ops.peer[op]!] ?? -1;
      }
      if (ops.isP2p[op] === 0) kind[at] = COLLECTIVE;
    }
    this.#records += kind.length;
    return { kind, group, peer };
  }

  placesOf(rank: Rank, places: readonly number[], iterations: readonly number[]): Durations {
    const index = this.#indexOf(rank);
    return this.#taken(rank, iterations, places.length, (iteration, p) => {
      const place = index?.places.get(iteration);
      if (!index || place === undefined) return -1;
      const op = index.operators.from[place]! + places[p]!;
      return op < index.operators.to[place]! ? op : -1;
    });
  }

  collectivesOf(
    ranks: readonly Rank[],
    group: number,
    nth: readonly number[],
    iterations: readonly number[],
  ): Durations[] {
    return ranks.map((rank) => {
      const index = this.#indexOf(rank);
      const list = index?.collectives.get(group);
      return this.#taken(rank, iterations, nth.length, (iteration, n) =>
        index && list ? this.#collective(index, list, group, iteration, nth[n]!) : -1,
      );
    });
  }

  transfersOf(
    side: Rank,
    from: Rank,
    to: Rank,
    nth: readonly number[],
    iterations: readonly number[],
  ): Durations {
    const index = this.#indexOf(side);
    const list = index?.transfers.get(side === to ? `r${from}` : `s${to}`);
    return this.#taken(side, iterations, nth.length, (iteration, n) => {
      const place = index?.places.get(iteration);
      if (!index || !list || place === undefined) return -1;
      const at = atLeast(list, index.operators.from[place]!) + nth[n]!;
      return at < list.length && list[at]! < index.operators.to[place]! ? list[at]! : -1;
    });
  }

  #taken(
    rank: Rank,
    iterations: readonly number[],
    places: number,
    opOf: (iteration: number, place: number) => number,
  ): Durations {
    const taken = new Float64Array(iterations.length * places).fill(NaN);
    const ops = this.#indexOf(rank)?.operators.ops;
    if (!ops) return taken;
    for (const [i, iteration] of iterations.entries())
      for (let place = 0; place < places; place++) {
        const op = opOf(iteration, place);
        if (op < 0) continue;
        this.#records++;
        taken[i * places + place] = ops.durationMs[op]!;
      }
    return taken;
  }

  /** The operator that is the group's nth of an iteration; by sequence number it may lie in another of this rank's. */
  #collective(
    { operators, places }: RankIndex,
    list: Int32Array,
    group: number,
    iteration: number,
    nth: number,
  ): number {
    const { ops, from, hasSequence } = operators;
    const place = places.get(iteration);
    if (place === undefined) return -1;
    const own = atLeast(list, from[place]!);
    const key = `${group} ${iteration}`;
    if (!hasSequence) return own + nth < list.length ? list[own + nth]! : -1;
    const first = this.#first.get(key);
    if (first === undefined && own < list.length) this.#first.set(key, ops.seq[list[own]!]!);
    const wanted = (first ?? ops.seq[list[own]!] ?? 0) + nth;
    // Sequence numbers of a group are consecutive, so that the place is known; a lost operator moves it.
    let at = own + nth + (wanted - (ops.seq[list[own + nth]!] ?? wanted));
    if (ops.seq[list[at]!] !== wanted) at = list.findIndex((op) => ops.seq[op] === wanted);
    if (at < 0) this.#mismatches++;
    return at < 0 ? -1 : list[at]!;
  }

  #indexOf(rank: Rank): RankIndex | null {
    let known = this.#indexes.get(rank);
    if (known === undefined) {
      const operators = this.#present.has(rank) ? this.#source.fetch(rank) : null;
      known = operators ? indexOf(operators, this.#groups) : null;
      this.#allRecords += operators?.ops.count ?? 0;
      this.#indexes.set(rank, known);
    }
    return known;
  }
}

function indexOf(operators: RankOperators, groups: readonly Group[]): RankIndex {
  const { ops, groupIds, iteration } = operators;
  const collectives = new Map<number, number[]>();
  const transfers = new Map<string, number[]>();
  const add = <K>(map: Map<K, number[]>, key: K, op: number): void => {
    const list = map.get(key);
    if (list) list.push(op);
    else map.set(key, [op]);
  };
  for (let op = 0; op < ops.count; op++) {
    const group = groupIds[ops.group[op]!] ?? -1;
    if (group < 0) continue;
    if (ops.isP2p[op] === 0) add(collectives, group, op);
    else {
      const peer = groups[group]?.ranks[ops.peer[op]!];
      if (peer !== undefined) add(transfers, `${ops.isSend[op] === 1 ? "s" : "r"}${peer}`, op);
    }
  }
  const packed = <K>(map: Map<K, number[]>): Map<K, Int32Array> =>
    new Map([...map].map(([key, list]) => [key, Int32Array.from(list)]));
  return {
    operators,
    places: new Map([...iteration].map((number, place) => [number, place])),
    collectives: packed(collectives),
    transfers: packed(transfers),
  };
}

/** Place of the first element that is not below a value; the list is ascending. */
function atLeast(list: Int32Array, value: number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
