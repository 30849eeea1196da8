/**
 * NCCL tells the end of a kernel when its first thread is through. Of a send and a receive in one group, and at the leaves of a
 * tree, that is long before the data has come, so that waiting for others looks like a rank's own time. But nothing ends
 * before its last member has begun, and no receive before its send: where a record says so, it ends then.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { farAhead } from "./clocks.ts";

/** Clocks of machines are known this well, and data takes as long to come. */
const SURELY_MS = 1;
/** Sequence numbers that a group's record may span. */
const MOST_CALLS = 1 << 20;
/**
 * All members leave an operator together, but of a broadcast the root may be done first, of a reduction the others. Where agents
 * do not tell which it is, that does no harm: for whom it is taken to wait there, it waits in the group's next operator.
 */
const ONE_WAY = /^(broadcast|reduce|gather|scatter)$/i;

export function withTrueEnds(
  all: readonly RankOperators[],
  groups: readonly Group[],
  clocks: ReadonlyMap<Rank, number>,
): readonly RankOperators[] {
  const timed = all.filter(isTimedByEnds);
  if (timed.length < 2) return all;
  const epochNs = timed[0]!.epochNs;
  const zeroMs = ({ rank, epochNs: own }: RankOperators): number =>
    Number(own - epochNs) / 1e6 - farAhead(clocks.get(rank) ?? 0);
  const begun = new Begun(groups);
  for (const operators of timed) begun.add(operators, zeroMs(operators));
  const mended = new Map(
    timed.map((operators) => [operators, mend(operators, zeroMs(operators), begun)]),
  );
  return all.map((operators) => mended.get(operators) ?? operators);
}

/** Flight recorders measure durations, and find starts and ends when they happen to look. */
function isTimedByEnds({
  ops: { count, startedNs, completedNs, durationMs },
}: RankOperators): boolean {
  let known = 0;
  for (let op = 0; op < count && known < LOOKED_AT; op++) {
    if (!(durationMs[op]! >= 0)) continue;
    known++;
    const ms = (completedNs[op]! - startedNs[op]!) / 1e6;
    if (!(Math.abs(ms - durationMs[op]!) <= 1e-3 * Math.max(1, ms))) return false;
  }
  return known > 0;
}

const LOOKED_AT = 64;

/** When operators began on the last member, and sends on their side. */
class Begun {
  readonly #groups: readonly Group[];
  readonly #collectives = new Map<number, { first: number; readonly lastMs: Float64Array }>();
  /** "from to iteration" → when each send of the iteration began, in order. */
  readonly #sends = new Map<string, number[]>();

  constructor(groups: readonly Group[]) {
    this.#groups = groups;
  }

  add(operators: RankOperators, zeroMs: number): void {
    const { rank, ops, groupIds, hasSequence, iteration, from, to } = operators;
    for (let op = 0; hasSequence && op < ops.count; op++) {
      const group = groupIds[ops.group[op]!] ?? -1;
      const ms = zeroMs + ops.startedNs[op]! / 1e6;
      if (group < 0 || ops.isP2p[op] === 1 || Number.isNaN(ms)) continue;
      const calls = getOrInsert(this.#collectives, group, () => ({
        first: ops.seq[op]! - BEFORE,
        lastMs: new Float64Array(0),
      }));
      const at = ops.seq[op]! - calls.first;
      if (at < 0 || at >= MOST_CALLS) continue;
      if (at >= calls.lastMs.length) this.#collectives.set(group, grown(calls, at));
      const { lastMs } = this.#collectives.get(group)!;
      if (!(lastMs[at]! >= ms)) lastMs[at] = ms;
    }
    for (const [i, number] of iteration.entries())
      for (let op = from[i]!; op < to[i]!; op++)
        if (ops.isP2p[op] === 1 && ops.isSend[op] === 1) {
          const peer = this.peerOf(operators, op);
          const key = `${rank} ${peer} ${number}`;
          getOrInsert(this.#sends, key, () => []).push(zeroMs + ops.startedNs[op]! / 1e6);
        }
  }

  peerOf({ ops, groupIds }: RankOperators, op: number): Rank {
    return this.#groups[groupIds[ops.group[op]!] ?? -1]?.ranks[ops.peer[op]!] ?? -1;
  }

  /** On the last of the members that left a record; NaN where that is not known. */
  lastOf(group: number, seq: number): number {
    const calls = this.#collectives.get(group);
    return calls?.lastMs[seq - calls.first] ?? NaN;
  }

  sendsOf(from: Rank, to: Rank, iteration: number): readonly number[] {
    return this.#sends.get(`${from} ${to} ${iteration}`) ?? [];
  }
}

/** Records of other ranks may go back further. */
const BEFORE = 1 << 16;

function grown<T extends { readonly lastMs: Float64Array }>(calls: T, at: number): T {
  const lastMs = new Float64Array(Math.max(2 * calls.lastMs.length, at + 1024)).fill(NaN);
  lastMs.set(calls.lastMs);
  return { ...calls, lastMs };
}

function mend(operators: RankOperators, zeroMs: number, begun: Begun): RankOperators {
  const { rank, ops, groupIds, hasSequence, iteration, from, to } = operators;
  let table: OperatorTable | null = null;
  const endsAt = (op: number, ms: number): void => {
    const later = ms - zeroMs - ops.completedNs[op]! / 1e6;
    if (!(later > SURELY_MS)) return;
    table ??= { ...ops, completedNs: ops.completedNs.slice(), durationMs: ops.durationMs.slice() };
    table.completedNs[op] = ops.completedNs[op]! + later * 1e6;
    table.durationMs[op] = ops.durationMs[op]! + later;
  };
  for (let op = 0; hasSequence && op < ops.count; op++)
    if (ops.isP2p[op] === 0 && !ONE_WAY.test(ops.names[ops.name[op]!]!))
      endsAt(op, begun.lastOf(groupIds[ops.group[op]!] ?? -1, ops.seq[op]!));
  for (const [i, number] of iteration.entries()) {
    const received = new Map<Rank, number[]>();
    for (let op = from[i]!; op < to[i]!; op++)
      if (ops.isP2p[op] === 1 && ops.isSend[op] === 0)
        getOrInsert(received, begun.peerOf(operators, op), () => []).push(op);
    for (const [peer, list] of received) {
      const sends = begun.sendsOf(peer, rank, number);
      // Where one of them cut the iteration elsewhere, nothing tells which is which.
      if (sends.length === list.length) for (const [k, op] of list.entries()) endsAt(op, sends[k]!);
    }
  }
  return table ? { ...operators, ops: table } : operators;
}
