/** Which process is a rank: of all that carry its number, the one that trains. */
import { getOrInsert } from "../../base/group-by.ts";
import { LIMITS } from "../wire/messages.ts";
import type { WatchedRing } from "./run-health.ts";

/** A process and its rings. */
export interface RankProcess {
  readonly pid: number;
  readonly startTicks: number;
  python: WatchedRing | null;
  native: WatchedRing | null;
}

/**
 * By rank, ascending. A program that a rank starts inherits its number; the process that trains is meant, and stays meant.
 * `rankOf` is asked for those that do not say theirs.
 */
export function rankProcesses(
  watched: readonly WatchedRing[],
  known: ReadonlyMap<number, RankProcess>,
  rankOf: (one: RankProcess) => number,
): Map<number, RankProcess> {
  const byRank = new Map<number, RankProcess[]>();
  for (const one of processesOf(watched)) {
    const said = Math.max(one.native?.ring.header.rank ?? -1, one.python?.ring.header.rank ?? -1);
    const rank = said >= 0 ? said : rankOf(one);
    if (rank < 0 || rank >= LIMITS.worldSize) continue;
    getOrInsert(byRank, rank, () => []).push(one);
  }
  const chosen = new Map<number, RankProcess>();
  for (const [rank, those] of [...byRank].sort(([a], [b]) => a - b)) {
    if (chosen.size >= LIMITS.ranksPerAgent) break;
    const before = known.get(rank);
    const one =
      those.find((it) => before && it.pid === before.pid && trains(it)) ??
      those.toSorted((a, b) => worth(b) - worth(a) || a.startTicks - b.startTicks)[0]!;
    chosen.set(rank, one);
  }
  return chosen;
}

function processesOf(watched: readonly WatchedRing[]): RankProcess[] {
  const byRank = new Map<string, RankProcess>();
  const byProcess = new Map<string, RankProcess>();
  // A ring that does not know its rank comes last, and goes with the other one of its process.
  for (const one of watched.toSorted((a, b) => b.ring.header.rank - a.ring.header.rank)) {
    const { pid, startTicks, writer, rank } = one.ring.header;
    const own = `${pid} ${startTicks}`;
    const known = rank >= 0 ? byRank.get(`${own} ${rank}`) : byProcess.get(own);
    const found = known ?? { pid, startTicks, python: null, native: null };
    if (rank >= 0) byRank.set(`${own} ${rank}`, found);
    byProcess.set(own, found);
    found[writer] = one;
  }
  return [...new Set([...byRank.values(), ...byProcess.values()])];
}

export function isOver({ state }: WatchedRing): boolean {
  return state === "X" || state === "Z";
}

export function isStopped({ state }: WatchedRing): boolean {
  return state === "T" || state === "t";
}

/** Ascending, those that are known. */
export function ranksIn(watched: readonly WatchedRing[]): number[] {
  const ranks = new Set(watched.map(({ ring }) => ring.header.rank));
  return [...ranks].filter((rank) => rank >= 0).sort((a, b) => a - b);
}

function trains({ python, native }: RankProcess): boolean {
  return (native?.follower.records ?? 0) > 0 || (python?.follower.lastIteration ?? -1) >= 0;
}

function worth(one: RankProcess): number {
  const watched = (one.native ?? one.python)!;
  return (trains(one) ? 2 : 0) + (isOver(watched) ? 0 : 1);
}
