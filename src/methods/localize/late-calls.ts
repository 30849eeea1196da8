/**
 * Whether a rank that the others wait for calls late or computes late. In every collective they share, the others wait for
 * so many milliseconds (their stay less its own), and the rank's call comes so many later than theirs. A slow CPU's calls are
 * late by at least what the others wait; a slow GPU's calls come with the others', or, where its CPU waits for it now and
 * then, late by less than what the others wait, because the GPU falls behind after the call as well. What counts is growth
 * since the rank was slow: differences of clocks and of habit cancel out.
 *
 * A rank is in an operator no later than the operator's end, which its peers' calls and stays tell, less its own stay. So the
 * records show how long a call waited for the rank's own GPU, and how much longer than usual: only a GPU that is behind makes
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
  /** 0..1: the part of the others' waiting in which its call had been made and waited for its own GPU, as far as clocks agree. */
  readonly queued: number;
  /** The same for what it waited longer than usual, whatever the clocks; null without a before. */
  readonly behind: number | null;
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
  let [waitMs, queuedMs, behindMs] = [0, 0, 0];
  for (let k = 0; k < length; k++) {
    const now = at(own, slow, k, length, find);
    const before = at(own, usual, k, length, find);
    if (now === null) continue;
    waitedMs.push(now.waitedMs - (before?.waitedMs ?? 0));
    lateMs.push(now.lateMs - (before?.lateMs ?? 0));
    // A GPU is not behind at the same call each time: the median would not show it.
    for (const one of now.seen) {
      const wait = Math.max(0, one.waitedMs);
      waitMs += wait;
      queuedMs += Math.max(0, Math.min(wait, one.mostQueuedMs));
      if (before) behindMs += Math.max(0, Math.min(wait, one.queuedMs - before.queuedMs));
    }
  }
  let [all, full] = [0, 0];
  for (const [k, waited] of waitedMs.entries()) {
    if (waited <= 0) continue;
    all += waited;
    if (lateMs[k]! >= IN_FULL * waited) full += waited;
  }
  if (all < SHOWS * growthMs) return null;
  const partOf = (ms: number): number => (waitMs > 0 ? ms / waitMs : 0);
  return {
    explained: full / all,
    firstMs: lateMs[0]!,
    queued: partOf(queuedMs),
    behind: usual.length === 0 ? null : partOf(behindMs),
  };
}

interface Seen {
  /** How much longer the others stay in it. */
  readonly waitedMs: number;
  readonly lateMs: number;
  /** How long its own call waited for its own GPU, but for differences of clocks; and at most. */
  readonly queuedMs: number;
  readonly mostQueuedMs: number;
}

/** The medians of what was seen. */
interface Place extends Seen {
  readonly seen: readonly Seen[];
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
    queuedMs: median(seen.map(({ queuedMs }) => queuedMs)),
    mostQueuedMs: Math.max(...seen.map(({ mostQueuedMs }) => mostQueuedMs)),
    seen,
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
    const ends = calls.map((call, k) => call + stays[k]!);
    return {
      waitedMs: median(stays) - ownStay,
      lateMs: called - median(calls),
      queuedMs: median(ends) - (called + ownStay),
      mostQueuedMs: Math.max(...ends) - (called + ownStay),
    };
  };
}

function bySequence({ ops, groupIds }: RankOperators, group: number): Map<number, number> {
  const found = new Map<number, number>();
  for (let op = 0; op < ops.count; op++)
    if (ops.isP2p[op] === 0 && groupIds[ops.group[op]!] === group) found.set(ops.seq[op]!, op);
  return found;
}
