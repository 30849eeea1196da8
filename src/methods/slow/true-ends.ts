/**
 * NCCL tells the end of a kernel when its first thread is through. Of a send and a receive in one group, and at the leaves of a
 * tree, that is long before the data has come, so that waiting for others looks like a rank's own time. The plug-in sees what
 * comes over a network; between the GPUs of a machine it sees nothing. But nothing ends before its last member has begun, and
 * no receive before its send: where ranks that share a clock say so, it ends then.
 */
import { getOrInsert, groupBy } from "../../base/group-by.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group, Job } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";

/** Differences that are no waiting: the GPU's clock is brought to the host's, and data takes a while to come. */
const SURELY_MS = 1;
/**
 * All members leave an operator together, but of a broadcast the root may be done first, of a reduction the others. Where agents
 * do not tell which it is, that does no harm: for whom it is taken to wait there, it waits in the group's next operator.
 */
const ONE_WAY = /^(broadcast|reduce|gather|scatter)$/i;

/** Clocks of two machines are known no better than healthy ranks differ: only ranks of one machine are compared. */
export function withTrueEnds(
  all: readonly RankOperators[],
  { groups, ranks }: Pick<Job, "groups" | "ranks">,
): readonly RankOperators[] {
  const timed = all.filter(isTimedByEnds);
  const mended = new Map<RankOperators, RankOperators>();
  for (const [machine, own] of groupBy(timed, ({ rank }) => ranks.get(rank)?.machine ?? null)) {
    if (machine === null || own.length < 2) continue;
    const begun = new Begun(groups, own[0]!.epochNs);
    for (const operators of own) begun.add(operators);
    for (const operators of own) mended.set(operators, mend(operators, begun));
  }
  return mended.size === 0 ? all : all.map((operators) => mended.get(operators) ?? operators);
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

/** When operators of one machine's ranks began: collectives on the last member, sends each. */
class Begun {
  readonly #groups: readonly Group[];
  readonly #epochNs: bigint;
  /** Group → sequence number → milliseconds. */
  readonly #collectives = new Map<number, Map<number, number>>();
  /** "group from to iteration" → of each send of the iteration, in order. */
  readonly #sends = new Map<string, number[]>();

  constructor(groups: readonly Group[], epochNs: bigint) {
    this.#groups = groups;
    this.#epochNs = epochNs;
  }

  /** Differences of epochs are exact, and small enough for a double. */
  zeroMs({ epochNs }: RankOperators): number {
    return Number(epochNs - this.#epochNs) / 1e6;
  }

  add(operators: RankOperators): void {
    const { rank, ops, groupIds, hasSequence, iteration, from, to } = operators;
    const zeroMs = this.zeroMs(operators);
    for (let op = 0; hasSequence && op < ops.count; op++) {
      const group = groupIds[ops.group[op]!] ?? -1;
      const ms = zeroMs + ops.startedNs[op]! / 1e6;
      if (group < 0 || ops.isP2p[op] === 1 || Number.isNaN(ms)) continue;
      const calls = getOrInsert(this.#collectives, group, () => new Map<number, number>());
      const last = calls.get(ops.seq[op]!);
      if (last === undefined || last < ms) calls.set(ops.seq[op]!, ms);
    }
    for (const [i, number] of iteration.entries())
      for (let op = from[i]!; op < to[i]!; op++) {
        if (ops.isP2p[op] === 0 || ops.isSend[op] === 0) continue;
        const peer = this.peerOf(operators, op);
        if (peer === rank) continue;
        const key = keyOf(groupIds[ops.group[op]!]!, rank, peer, number);
        getOrInsert(this.#sends, key, () => []).push(zeroMs + ops.startedNs[op]! / 1e6);
      }
  }

  peerOf({ ops, groupIds }: RankOperators, op: number): Rank {
    return this.#groups[groupIds[ops.group[op]!] ?? -1]?.ranks[ops.peer[op]!] ?? -1;
  }

  lastOf(group: number, seq: number): number {
    return this.#collectives.get(group)?.get(seq) ?? NaN;
  }

  sendsOf(group: number, from: Rank, to: Rank, iteration: number): readonly number[] {
    return this.#sends.get(keyOf(group, from, to, iteration)) ?? [];
  }
}

function keyOf(group: number, from: Rank, to: Rank, iteration: number): string {
  return `${group} ${from} ${to} ${iteration}`;
}

function mend(operators: RankOperators, begun: Begun): RankOperators {
  const { rank, ops, groupIds, hasSequence, iteration, from, to } = operators;
  const zeroMs = begun.zeroMs(operators);
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
    // NCCL keeps the order of transfers within a communicator alone.
    const received = new Map<string, { group: number; peer: Rank; ops: number[] }>();
    for (let op = from[i]!; op < to[i]!; op++) {
      if (ops.isP2p[op] === 0 || ops.isSend[op] === 1) continue;
      const peer = begun.peerOf(operators, op);
      const group = groupIds[ops.group[op]!]!;
      getOrInsert(received, `${group} ${peer}`, () => ({ group, peer, ops: [] })).ops.push(op);
    }
    for (const { group, peer, ops: list } of received.values()) {
      const sends = begun.sendsOf(group, peer, rank, number);
      // Where one of them cut the iteration elsewhere, nothing tells which is which.
      if (sends.length === list.length) for (const [k, op] of list.entries()) endsAt(op, sends[k]!);
    }
  }
  return table ? { ...operators, ops: table } : operators;
}
