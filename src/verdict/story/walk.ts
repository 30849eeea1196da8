/**
 * From a waiting rank along the operator graph to the rank that it waits for (Holmes §4.3, algorithm 1), in one
 * iteration. An operator ends for all members at the same moment, so the one that stays in it least came last. Only
 * durations are compared: clocks of two machines never are.
 */
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import {
  collectivesOf,
  receivesFrom,
  sameCollective,
  sendsTo,
  type RankCalls,
  type Waiting,
} from "./rank-calls.ts";

export interface WalkedHop {
  readonly kind: "collective" | "transfer";
  /** The job's group. */
  readonly group: number;
  readonly from: RankCalls;
  /** Of `from`: the operator that is looked at, its count in the iteration, and what it takes beyond the usual. */
  readonly op: number;
  readonly nth: number;
  readonly excessMs: number;
  readonly to: Rank;
  /** Members that were asked and took part, in the order of the group. */
  readonly took: readonly { readonly rank: Rank; readonly ms: number }[];
  readonly leftOut: number;
}

/** own: the rank is late by itself. network: nobody came late, and it takes long all the same. */
export type WalkEnd =
  | { readonly by: "own"; readonly rank: Rank; readonly peers: readonly Rank[] }
  | { readonly by: "network"; readonly ranks: readonly Rank[]; readonly floorMs: number };

export interface Walk {
  readonly iteration: number;
  readonly hops: readonly WalkedHop[];
  readonly end: WalkEnd;
}

/** What is at hand while walking. */
export interface Walker {
  readonly groups: readonly Group[];
  readonly healthy: readonly number[];
  /** null for those that cannot be had. */
  calls(ranks: readonly Rank[]): Promise<readonly (RankCalls | null)[]>;
  /** Time outside communication in the iteration, beyond the rank's usual or its peers'; NaN where unknown. */
  ownExcessMs(rank: Rank, iteration: number): number;
  /** Of a large group, who is asked. */
  chosen(members: readonly Rank[], from: Rank): readonly Rank[];
}

export const MOST_HOPS = 8;
/** Of a rank's waiting, that which led here: less is noise. */
const WAITS = 0.3;
/** Share of the waiting that even the last rank to arrive spends: then no rank came late (progressive/search.ts). */
const ALIKE = 0.6;
const MOST_WAYS = 3;

export async function walk(
  walker: Walker,
  victim: RankCalls,
  iteration: number,
): Promise<Walk | null> {
  const hops: WalkedHop[] = [];
  const visited = new Set<Rank>();
  let at = victim;
  let before = Infinity;
  while (hops.length < MOST_HOPS) {
    visited.add(at.rank);
    const ways = at.waits(iteration, before).slice(0, MOST_WAYS);
    const longest = ways[0]?.excessMs ?? 0;
    const led = hops.at(-1)?.excessMs ?? 0;
    const own = walker.ownExcessMs(at.rank, iteration);
    if (longest <= WAITS * led || longest <= 0 || own >= longest) {
      const last = hops.at(-1);
      if (!last) return null;
      const peers = last.took.map(({ rank }) => rank);
      return { iteration, hops, end: { by: "own", rank: at.rank, peers } };
    }
    let next: Step | null = null;
    for (const way of ways) {
      if (way.excessMs <= WAITS * longest) break;
      const step = await follow(walker, at, way, iteration);
      if (!step) continue;
      if (step.network) {
        const end = { by: "network", ...step.network } as const;
        return { iteration, hops: [...hops, step.hop], end };
      }
      if (visited.has(step.hop.to)) continue;
      next = step;
      break;
    }
    if (!next?.calls) return null;
    hops.push(next.hop);
    at = next.calls;
    before = next.before;
  }
  return null;
}

interface Step {
  readonly hop: WalkedHop;
  readonly network: { readonly ranks: readonly Rank[]; readonly floorMs: number } | null;
  /** Whom it leads to, and the operator that it came late to. */
  readonly calls: RankCalls | null;
  readonly before: number;
}

async function follow(
  walker: Walker,
  at: RankCalls,
  way: Waiting,
  iteration: number,
): Promise<Step | null> {
  return way.isGroup
    ? await intoGroup(walker, at, way, iteration)
    : await toSender(walker, at, way, iteration);
}

async function intoGroup(
  walker: Walker,
  at: RankCalls,
  way: Waiting,
  iteration: number,
): Promise<Step | null> {
  const { ranks } = walker.groups[way.of]!;
  const asked = walker.chosen(ranks, at.rank);
  const found = (await walker.calls(asked)).filter((calls) => calls !== null);
  const members = found.filter((calls) => calls.has(iteration));
  if (members.length < 2) return null;
  const key = collectivesOf(way.of);
  const floor = floors(
    members.map((calls) => (n: number) => calls.list(n, key).map((op) => calls.ms(op))),
    iteration,
    walker.healthy,
  );
  const isNetwork = floor.excessMs >= ALIKE * way.excessMs;
  // A rank that does not answer may be the one that all wait for.
  if (isNetwork && members.length < asked.length) return null;
  // Where the network is slow, the operator that shows it best is the one whose last comer stayed longest.
  const nth = isNetwork ? floor.nth : way.nth;
  const op = isNetwork ? (at.list(iteration, key)[nth] ?? way.op) : way.op;
  const parts = members.flatMap((calls) => {
    const same = sameCollective(at, op, nth, calls, way.of, iteration);
    const ms = calls.ms(same);
    return same === undefined || Number.isNaN(ms) ? [] : [{ calls, op: same, ms }];
  });
  if (parts.length < 2) return null;
  const last = parts.reduce((a, b) => (b.ms < a.ms ? b : a));
  const hop: WalkedHop = {
    kind: "collective",
    group: way.of,
    from: at,
    op,
    nth,
    excessMs: at.ms(op) - at.usualMs(key, nth),
    to: isNetwork ? at.rank : last.calls.rank,
    took: parts.map(({ calls, ms }) => ({ rank: calls.rank, ms })),
    leftOut: ranks.length - parts.length,
  };
  const network = isNetwork ? { ranks, floorMs: floor.excessMs } : null;
  return { hop, network, calls: last.calls, before: last.op };
}

async function toSender(
  walker: Walker,
  at: RankCalls,
  way: Waiting,
  iteration: number,
): Promise<Step | null> {
  const [sender] = await walker.calls([way.of]);
  if (!sender?.has(iteration)) return null;
  const [received, sent] = [receivesFrom(way.of), sendsTo(at.rank)];
  const floor = floors(
    [
      (n) => at.list(n, received).map((op) => at.ms(op)),
      (n) => sender.list(n, sent).map((op) => sender.ms(op)),
    ],
    iteration,
    walker.healthy,
  );
  const isNetwork = floor.excessMs >= ALIKE * way.excessMs;
  const nth = isNetwork ? floor.nth : way.nth;
  const op = at.list(iteration, received)[nth] ?? way.op;
  const other = sender.list(iteration, sent)[nth];
  if (other === undefined || Number.isNaN(sender.ms(other))) return null;
  const { ops, groupIds } = at.operators;
  const hop: WalkedHop = {
    kind: "transfer",
    group: groupIds[ops.group[op]!] ?? -1,
    from: at,
    op,
    nth,
    excessMs: at.ms(op) - at.usualMs(received, nth),
    to: isNetwork ? at.rank : sender.rank,
    took: [
      { rank: sender.rank, ms: sender.ms(other) },
      { rank: at.rank, ms: at.ms(op) },
    ],
    leftOut: 0,
  };
  const network = isNetwork ? { ranks: [sender.rank, at.rank], floorMs: floor.excessMs } : null;
  return { hop, network, calls: sender, before: other };
}

/** How long operators take once all are there (progressive/minimum-durations.ts): how much more, and which shows it best. */
function floors(
  sides: readonly ((iteration: number) => readonly number[])[],
  iteration: number,
  healthy: readonly number[],
): { excessMs: number; nth: number } {
  const floorOf = (number: number): number[] => {
    const all = sides.map((side) => side(number)).filter((list) => list.length > 0);
    const count = all.reduce((least, list) => Math.min(least, list.length), Infinity);
    if (all.length === 0 || !Number.isFinite(count)) return [];
    return Array.from({ length: count }, (_, nth) => Math.min(...all.map((list) => list[nth]!)));
  };
  const now = floorOf(iteration);
  const usual = healthy.map(floorOf).filter((list) => list.length > 0);
  // Without a healthy time nothing tells what it should take.
  if (usual.length === 0) return { excessMs: 0, nth: 0 };
  let [excessMs, nth, most] = [0, 0, -Infinity];
  for (const [n, ms] of now.entries()) {
    const before = usual.map((list) => list[n] ?? NaN).filter((each) => !Number.isNaN(each));
    if (before.length === 0 || Number.isNaN(ms)) continue;
    const more = ms - before.sort((a, b) => a - b)[before.length >> 1]!;
    excessMs += more;
    if (more > most) [nth, most] = [n, more];
  }
  return { excessMs, nth };
}
