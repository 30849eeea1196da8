/**
 * NCCL tells the end of a kernel when its first thread is through. Of a send and a receive in one group, and at the leaves of a
 * tree, that is long before the data has come, so that waiting for others looks like a rank's own time. The plug-in sees what
 * comes over a network; between the GPUs of a machine it sees nothing. But nothing ends before its last member has begun, and
 * no receive before its send: where ranks that share a clock say so, it ends then.
 */
import { getOrInsert, groupBy } from "../../base/group-by.ts";
import type { Group, Job } from "../../model/job.ts";
import type { OperatorTable } from "../../model/operators.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { epochShiftMs, groupOf, hasTrueTimes, peerOf } from "./times.ts";

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
  const timed = all.filter(hasTrueTimes);
  const mended = new Map<RankOperators, RankOperators>();
  for (const [machine, own] of groupBy(timed, ({ rank }) => ranks.get(rank)?.machine ?? null)) {
    if (machine === null || own.length < 2) continue;
    const { epochNs } = own[0]!;
    const begun = begunOf(own, groups, epochNs);
    for (const operators of own) mended.set(operators, mend(operators, begun, groups, epochNs));
  }
  return mended.size === 0 ? all : all.map((operators) => mended.get(operators) ?? operators);
}

/** When operators of one machine's ranks began, milliseconds: collectives on the last member, sends each. */
interface Begun {
  /** Group → sequence number → milliseconds. */
  readonly collectives: Map<number, Map<number, number>>;
  readonly sends: Map<string, readonly number[]>;
}

function begunOf(own: readonly RankOperators[], groups: readonly Group[], zeroNs: bigint): Begun {
  const begun: Begun = { collectives: new Map(), sends: new Map() };
  for (const operators of own) {
    const { ops } = operators;
    const shiftMs = epochShiftMs(operators, zeroNs);
    const startMs = (op: number): number => shiftMs + ops.startedNs[op]! / 1e6;
    for (const op of collectivesOf(operators)) {
      const calls = getOrInsert(begun.collectives, groupOf(operators, op), () => new Map());
      const ms = Math.max(startMs(op), calls.get(ops.seq[op]!) ?? -Infinity);
      if (!Number.isNaN(ms)) calls.set(ops.seq[op]!, ms);
    }
    for (const [key, sends] of transfersOf(operators, groups, true))
      begun.sends.set(key, sends.map(startMs));
  }
  return begun;
}

function* collectivesOf(operators: RankOperators): Iterable<number> {
  const { ops, hasSequence } = operators;
  for (let op = 0; hasSequence && op < ops.count; op++)
    if (ops.isP2p[op] === 0 && groupOf(operators, op) >= 0) yield op;
}

/** "group from to iteration" → the sends of the iteration, or the receives, in order: NCCL keeps it within a communicator alone. */
function transfersOf(
  operators: RankOperators,
  groups: readonly Group[],
  areSends: boolean,
): Map<string, number[]> {
  const { rank, ops, iteration, from, to } = operators;
  const transfers = new Map<string, number[]>();
  for (const [i, number] of iteration.entries())
    for (let op = from[i]!; op < to[i]!; op++) {
      const peer = peerOf(operators, op, groups);
      if (ops.isP2p[op] === 0 || (ops.isSend[op] === 1) !== areSends || peer === rank) continue;
      const ends = areSends ? `${rank} ${peer}` : `${peer} ${rank}`;
      const key = `${groupOf(operators, op)} ${ends} ${number}`;
      getOrInsert(transfers, key, () => []).push(op);
    }
  return transfers;
}

function mend(
  operators: RankOperators,
  { collectives, sends }: Begun,
  groups: readonly Group[],
  zeroNs: bigint,
): RankOperators {
  const { ops } = operators;
  const shiftMs = epochShiftMs(operators, zeroNs);
  let table: OperatorTable | null = null;
  const endsAt = (op: number, ms = NaN): void => {
    const later = ms - shiftMs - ops.completedNs[op]! / 1e6;
    if (!(later > SURELY_MS)) return;
    table ??= { ...ops, completedNs: ops.completedNs.slice(), durationMs: ops.durationMs.slice() };
    table.completedNs[op] = ops.completedNs[op]! + later * 1e6;
    table.durationMs[op] = ops.durationMs[op]! + later;
  };
  for (const op of collectivesOf(operators))
    if (!ONE_WAY.test(ops.names[ops.name[op]!]!))
      endsAt(op, collectives.get(groupOf(operators, op))?.get(ops.seq[op]!));
  for (const [key, receives] of transfersOf(operators, groups, false)) {
    const own = sends.get(key);
    // Where one of them cut the iteration elsewhere, nothing tells which is which.
    if (own?.length === receives.length)
      for (const [k, op] of receives.entries()) endsAt(op, own[k]);
  }
  return table ? { ...operators, ops: table } : operators;
}
