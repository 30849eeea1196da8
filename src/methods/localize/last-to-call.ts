/**
 * Whose call everybody waits for. In every collective one member calls last: by how much later than the one before it, and
 * how long even the member that waited least stayed longer than it did. The lesser of both is what the others lost to that
 * call and to nothing else: a CPU that runs ahead of its GPU calls late and no rank waits, whichever rank waits for a slow GPU or a
 * third rank waits without a late call. A rank's loss of an iteration is the largest of its operators'. On recorded jobs a slow
 * CPU or loader shows a third to a half of the iteration on its rank and nothing on the others.
 */
import type { Rank } from "../../model/ids.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { farAhead } from "./clocks.ts";

/** A group's collectives by sequence number, from the least that was recorded. */
interface Calls {
  readonly first: number;
  readonly members: Uint16Array;
  readonly lastMs: Float64Array;
  readonly beforeMs: Float64Array;
  readonly lastRank: Int32Array;
  readonly lastStayMs: Float64Array;
  /** The shortest stay, whose, and the shortest of the others. */
  readonly leastMs: Float64Array;
  readonly leastRank: Int32Array;
  readonly nextMs: Float64Array;
}

/** Sequence numbers that a group's record may span. */
const MOST_CALLS = 1 << 20;

/** Milliseconds by iteration of each rank, in the order of `ranks`. */
export function lostToLateCalls(
  ranks: readonly RankOperators[],
  clocks: ReadonlyMap<Rank, number>,
): Float64Array[] {
  const groups = tablesOf(ranks);
  const epochNs = ranks[0]?.epochNs ?? 0n;
  for (const operators of ranks) fill(groups, operators, epochNs, clocks);
  return ranks.map(({ rank, ops, from, to, groupIds }) =>
    Float64Array.from(from, (begin, i) => {
      let most = 0;
      for (let op = begin; op < to[i]!; op++) {
        const calls = ops.isP2p[op] === 1 ? undefined : groups.get(groupIds[ops.group[op]!]!);
        if (!calls) continue;
        const at = ops.seq[op]! - calls.first;
        if (calls.lastRank[at] !== rank || calls.members[at]! < 2) continue;
        const least = calls.leastRank[at] === rank ? calls.nextMs[at]! : calls.leastMs[at]!;
        const lost = Math.min(
          calls.lastMs[at]! - calls.beforeMs[at]!,
          least - calls.lastStayMs[at]!,
        );
        if (lost > most) most = lost;
      }
      return most;
    }),
  );
}

function tablesOf(ranks: readonly RankOperators[]): Map<number, Calls> {
  const spans = new Map<number, [number, number]>();
  for (const { ops, groupIds, hasSequence } of ranks)
    for (let op = 0; hasSequence && op < ops.count; op++) {
      const group = groupIds[ops.group[op]!] ?? -1;
      if (group < 0 || ops.isP2p[op] === 1) continue;
      const seq = ops.seq[op]!;
      const span = spans.get(group);
      if (!span) spans.set(group, [seq, seq]);
      else if (seq < span[0]) span[0] = seq;
      else if (seq > span[1]) span[1] = seq;
    }
  const tables = new Map<number, Calls>();
  for (const [group, [first, last]] of spans) {
    const size = last - first + 1;
    if (size > MOST_CALLS) continue;
    tables.set(group, {
      first,
      members: new Uint16Array(size),
      lastMs: new Float64Array(size).fill(-Infinity),
      beforeMs: new Float64Array(size).fill(-Infinity),
      lastRank: new Int32Array(size).fill(-1),
      lastStayMs: new Float64Array(size),
      leastMs: new Float64Array(size).fill(Infinity),
      leastRank: new Int32Array(size).fill(-1),
      nextMs: new Float64Array(size).fill(Infinity),
    });
  }
  return tables;
}

function fill(
  groups: ReadonlyMap<number, Calls>,
  { rank, ops, groupIds, epochNs, hasSequence }: RankOperators,
  zeroNs: bigint,
  clocks: ReadonlyMap<Rank, number>,
): void {
  if (!hasSequence) return;
  // Differences of epochs are exact, and small enough for a double.
  const epochMs = Number(epochNs - zeroNs) / 1e6 - farAhead(clocks.get(rank) ?? 0);
  for (let op = 0; op < ops.count; op++) {
    const calls = ops.isP2p[op] === 1 ? undefined : groups.get(groupIds[ops.group[op]!]!);
    const stayMs = ops.durationMs[op]!;
    if (!calls || !(stayMs >= 0)) continue;
    const at = ops.seq[op]! - calls.first;
    const calledMs = epochMs + ops.createdNs[op]! / 1e6;
    calls.members[at]!++;
    if (calledMs > calls.lastMs[at]!) {
      calls.beforeMs[at] = calls.lastMs[at]!;
      calls.lastMs[at] = calledMs;
      calls.lastRank[at] = rank;
      calls.lastStayMs[at] = stayMs;
    } else if (calledMs > calls.beforeMs[at]!) calls.beforeMs[at] = calledMs;
    if (stayMs < calls.leastMs[at]!) {
      calls.nextMs[at] = calls.leastMs[at]!;
      calls.leastMs[at] = stayMs;
      calls.leastRank[at] = rank;
    } else if (stayMs < calls.nextMs[at]!) calls.nextMs[at] = stayMs;
  }
}
