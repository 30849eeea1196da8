/**
 * The members of groups whose writers know only their own place in them (probe rings): all that name the same
 * communicator is a member. Seats of ranks that left no ring are filled where only one rank fits.
 */
import { count, cutText } from "../../base/text.ts";
import type { Rank } from "../../model/ids.ts";
import type { DumpGroup, FlightDump } from "../../model/operators.ts";

interface Seats {
  readonly name: string;
  readonly desc: string;
  /** By place in the group; -1 where nobody spoke for it. */
  readonly ranks: Int32Array;
}

interface OwnGroups {
  readonly dumps: Map<Rank, FlightDump>;
  /** Name of a group → its members of whom nothing is known. */
  readonly unknown: ReadonlyMap<string, number>;
}

export function resolveOwnGroups(
  dumps: ReadonlyMap<Rank, FlightDump>,
  worldSize: number,
  missing: string[],
): OwnGroups {
  const seats = takeSeats(dumps);
  if (seats.size === 0) return { dumps: new Map(dumps), unknown: new Map() };
  const silent = silentRanks(dumps, worldSize);
  const unknown = new Map<string, number>();
  for (const [name, { ranks }] of seats) {
    fillBetween(ranks, silent);
    fillProgression(ranks, silent);
    const empty = ranks.reduce((sum, rank) => sum + (rank < 0 ? 1 : 0), 0);
    if (empty > 0) unknown.set(name, empty);
  }
  if (unknown.size > 0) {
    const words = [...unknown].map(([name, empty]) => {
      const { desc, ranks } = seats.get(name)!;
      return `${empty} of ${ranks.length} in ${desc || name}`;
    });
    missing.push(
      `members of ${count(unknown.size, "communicator")} left no ring, and their ranks are unknown: ${cutText(words.join(", "), 200)}`,
    );
  }
  const members = new Map([...seats].map(([name, { ranks }]) => [name, seated(ranks)]));
  const resolved = new Map<Rank, FlightDump>();
  for (const [rank, dump] of dumps) resolved.set(rank, withMembers(dump, members));
  return { dumps: resolved, unknown };
}

function takeSeats(dumps: ReadonlyMap<Rank, FlightDump>): Map<string, Seats> {
  const seats = new Map<string, Seats>();
  for (const [rank, { groups }] of dumps) {
    for (const { name, desc, own } of groups) {
      if (!own) continue;
      const known = seats.get(name);
      // Two members that disagree on the size: one of the tables is damaged; the larger holds both.
      if (!known || known.ranks.length < own.size) {
        const ranks = new Int32Array(own.size).fill(-1);
        if (known) ranks.set(known.ranks);
        seats.set(name, { name, desc: known?.desc || desc, ranks });
      }
      seats.get(name)!.ranks[own.groupRank] = rank;
    }
  }
  return seats;
}

/** A rank with a ring has said in which groups it is: only the others can have empty seats. */
function silentRanks(dumps: ReadonlyMap<Rank, FlightDump>, worldSize: number): Rank[] {
  const silent: Rank[] = [];
  for (let rank = 0; rank < worldSize; rank++) if (!dumps.has(rank)) silent.push(rank);
  return silent;
}

/** Groups are made of ascending ranks, nearly always: between two known members there may be just as many as seats. */
function fillBetween(ranks: Int32Array, silent: readonly Rank[]): void {
  if (!ascends(ranks)) return;
  for (let from = 0; from < ranks.length;) {
    if (ranks[from]! >= 0) {
      from++;
      continue;
    }
    let to = from;
    while (to < ranks.length && ranks[to]! < 0) to++;
    const low = from > 0 ? ranks[from - 1]! : -1;
    const high = to < ranks.length ? ranks[to]! : Infinity;
    const begin = firstAbove(silent, low);
    const fits = firstAbove(silent, high - 1) - begin;
    if (fits === to - from)
      for (let seat = from; seat < to; seat++) ranks[seat] = silent[begin + seat - from]!;
    from = to;
  }
}

/** Index of the first that is above; the list ascends. */
function firstAbove(list: readonly number[], value: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

function ascends(ranks: Int32Array): boolean {
  let last = -1;
  for (const rank of ranks) {
    if (rank < 0) continue;
    if (rank <= last) return false;
    last = rank;
  }
  return true;
}

/** Ranks of one dimension of parallelism are evenly apart: two members of it give the others. */
function fillProgression(ranks: Int32Array, silent: readonly Rank[]): void {
  const known: number[] = [];
  for (let seat = 0; seat < ranks.length; seat++) if (ranks[seat]! >= 0) known.push(seat);
  const [first, second] = known;
  if (first === undefined || second === undefined || known.length === ranks.length) return;
  const step = (ranks[second]! - ranks[first]!) / (second - first);
  if (!Number.isInteger(step) || step === 0) return;
  const at = (seat: number): number => ranks[first]! + (seat - first) * step;
  if (!known.every((seat) => ranks[seat] === at(seat))) return;
  const free = new Set(silent);
  const filled = Int32Array.from(ranks, (rank, seat) => (rank >= 0 ? rank : at(seat)));
  if (filled.every((rank, seat) => rank === ranks[seat] || free.has(rank))) ranks.set(filled);
}

interface Members {
  readonly ranks: readonly Rank[];
  /** Place in the group → place among those that are known; -1 for the others. null where all are known. */
  readonly places: Int32Array | null;
}

function seated(seats: Int32Array): Members {
  const ranks: Rank[] = [];
  const places = Int32Array.from(seats, (rank) => (rank < 0 ? -1 : ranks.push(rank) - 1));
  return { ranks, places: ranks.length === seats.length ? null : places };
}

function withMembers(dump: FlightDump, members: ReadonlyMap<string, Members>): FlightDump {
  const groups = dump.groups.map((group): DumpGroup => {
    const known = group.own ? members.get(group.name) : undefined;
    return known ? { ...group, ranks: known.ranks } : group;
  });
  const placesOf = dump.groups.map((group) => members.get(group.name)?.places ?? null);
  if (placesOf.every((places) => places === null)) return { ...dump, groups };
  const { ops } = dump;
  const peer = ops.peer.map((place, i) =>
    place < 0 ? place : (placesOf[ops.group[i]!]?.[place] ?? place),
  );
  return { ...dump, groups, ops: { ...ops, peer } };
}
