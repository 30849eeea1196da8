/**
 * Whether a rank that the others wait for calls late or computes late. In every collective they share, the others wait for
 * so many milliseconds (their stay less its own), and the rank's call comes so many later than theirs. A slow CPU's calls are
 * late by at least what the others wait; a slow GPU's calls come with the others', or, where its CPU waits for it now and
 * then, late by less than what the others wait, because the GPU falls behind after the call as well. What counts is growth
 * since the rank was slow: differences of clocks and of habit cancel out.
 *
 * A rank is in an operator no later than the operator's end less its own stay. The end is no earlier than any member's call
 * plus its stay. So the records show at least how long a call waited for the rank's own GPU: only a GPU that is behind makes
 * calls wait, a slow CPU finds it idle.
 */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { farAhead } from "./clocks.ts";

interface LateCalls {
  /** 0..1: the part of the others' waiting that the rank's late calls explain in full. */
  readonly explained: number;
  /** How much later its first collective call of an iteration comes, milliseconds. */
  readonly firstMs: number;
  /** 0..1: the part of the others' waiting in which its call had been made and waited for its own GPU. */
  readonly behind: number;
}

/** A call that is late by this part of what the others wait explains it. */
const IN_FULL = 0.98;
/** What the others wait in collectives, as a part of what the rank is slower by: less says nothing. */
const SHOWS = 0.15;
/** Members of a group that a rank is compared with. */
const MOST_MEMBERS = 64;

/** `slow`, `usual`: indices of the rank's iterations; null where collectives do not tell. */
export function lateCalls(
  own: RankOperators,
  others: readonly RankOperators[],
  slow: readonly number[],
  usual: readonly number[],
  growthMs: number,
  clocks: ReadonlyMap<Rank, number>,
): LateCalls | null {
  if (!own.hasSequence || slow.length === 0) return null;
  const length = own.to[slow.at(-1)!]! - own.from[slow.at(-1)!]!;
  const find = finder(own, others, clocks);
  const waitedMs: number[] = [];
  const lateMs: number[] = [];
  let [waitMs, behindMs] = [0, 0];
  for (let k = 0; k < length; k++) {
    const now = at(own, slow, k, length, find);
    const before = at(own, usual, k, length, find);
    if (now === null) continue;
    waitedMs.push(now.waitedMs - (before?.waitedMs ?? 0));
    lateMs.push(now.lateMs - (before?.lateMs ?? 0));
    waitMs += now.sumWaitedMs;
    behindMs += now.sumBehindMs;
  }
  let [all, full] = [0, 0];
  for (const [k, waited] of waitedMs.entries()) {
    if (waited <= 0) continue;
    all += waited;
    if (lateMs[k]! >= IN_FULL * waited) full += waited;
  }
  if (all < SHOWS * growthMs) return null;
  return { explained: full / all, firstMs: lateMs[0]!, behind: waitMs > 0 ? behindMs / waitMs : 0 };
}

interface Seen {
  /** How much longer the others stay in it. */
  readonly waitedMs: number;
  readonly lateMs: number;
  /** For how much of that, at least, its own call waited for its own GPU. */
  readonly behindMs: number;
}

interface Place extends Pick<Seen, "waitedMs" | "lateMs"> {
  /** Sums, because a GPU is not behind at the same call each time. */
  readonly sumWaitedMs: number;
  readonly sumBehindMs: number;
}

type Find = (op: number) => Seen | null;

/** The medians over iterations of the kth operator; null where it is no collective that others recorded, too. */
function at(
  { from, to }: RankOperators,
  iterations: readonly number[],
  k: number,
  length: number,
  find: Find,
): Place | null {
  const seen = iterations.flatMap((i) =>
    to[i] === from[i]! + length ? (find(from[i]! + k) ?? []) : [],
  );
  if (seen.length === 0) return null;
  return {
    waitedMs: median(seen.map(({ waitedMs }) => waitedMs)),
    lateMs: median(seen.map(({ lateMs }) => lateMs)),
    sumWaitedMs: seen.reduce((sum, { waitedMs }) => sum + Math.max(0, waitedMs), 0),
    sumBehindMs: seen.reduce((sum, { behindMs }) => sum + behindMs, 0),
  };
}

function finder(
  own: RankOperators,
  others: readonly RankOperators[],
  clocks: ReadonlyMap<Rank, number>,
): Find {
  const members = new Map<number, { operators: RankOperators; ops: Map<number, number> }[]>();
  const calledMs = ({ rank, ops, epochNs }: RankOperators, op: number): number => {
    const ahead = farAhead(clocks.get(rank) ?? 0);
    // Differences of epochs are exact, and small enough for a double.
    const epochMs = Number(epochNs - own.epochNs) / 1e6;
    return epochMs + ops.createdNs[op]! / 1e6 - ahead;
  };
  return (op) => {
    const group = own.groupIds[own.ops.group[op]!] ?? -1;
    if (own.ops.isP2p[op] === 1 || group < 0) return null;
    let list = members.get(group);
    if (!list) {
      list = others
        .filter(({ rank, groupIds }) => rank !== own.rank && groupIds.includes(group))
        .slice(0, MOST_MEMBERS)
        .map((operators) => ({ operators, ops: bySequence(operators, group) }));
      members.set(group, list);
    }
    const [stays, calls]: [number[], number[]] = [[], []];
    for (const { operators, ops } of list) {
      const theirs = ops.get(own.ops.seq[op]!);
      if (theirs === undefined || !(operators.ops.durationMs[theirs]! >= 0)) continue;
      stays.push(operators.ops.durationMs[theirs]!);
      calls.push(calledMs(operators, theirs));
    }
    const ownStay = own.ops.durationMs[op]!;
    if (stays.length === 0 || !(ownStay >= 0)) return null;
    const called = calledMs(own, op);
    const end = Math.max(...calls.map((call, k) => call + stays[k]!));
    const waitedMs = median(stays) - ownStay;
    const behindMs = Math.max(0, Math.min(waitedMs, end - (called + ownStay)));
    return { waitedMs, lateMs: called - median(calls), behindMs };
  };
}

function bySequence({ ops, groupIds }: RankOperators, group: number): Map<number, number> {
  const found = new Map<number, number>();
  for (let op = 0; op < ops.count; op++)
    if (ops.isP2p[op] === 0 && groupIds[ops.group[op]!] === group) found.set(ops.seq[op]!, op);
  return found;
}
