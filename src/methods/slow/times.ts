/** Which group and rank an operator is for, when it was issued, and when it ran as far as the record tells. */
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";

/** In Job.groups; -1: its members are unknown. */
export function groupOf({ ops, groupIds }: RankOperators, op: number): number {
  return groupIds[ops.group[op]!] ?? -1;
}

/** Whom a transfer is sent to or received from; -1 where the record does not tell. */
export function peerOf(operators: RankOperators, op: number, groups: readonly Group[]): Rank {
  return groups[groupOf(operators, op)]?.ranks[operators.ops.peer[op]!] ?? -1;
}

/** When an operator was issued, milliseconds since 1970: exact enough to order calls, not to subtract. */
export function absoluteMs({ epochNs, ops }: RankOperators, op: number): number {
  return Number(epochNs / 1_000_000n) + ops.createdNs[op]! / 1e6;
}

/** What is added to an operator's nanoseconds so that two ranks' may be subtracted: differences of epochs are exact. */
export function epochShiftMs({ epochNs }: RankOperators, zeroNs: bigint): number {
  return Number(epochNs - zeroNs) / 1e6;
}

const LOOKED_AT = 64;

/**
 * Whether the record has true starts and ends. Flight recorders measure durations, and find starts and ends when they happen to
 * look.
 */
export function hasTrueTimes({
  ops: { count, startedNs, completedNs, durationMs },
}: RankOperators): boolean {
  let known = 0;
  for (let op = 0; op < count && known < LOOKED_AT; op++) {
    if (!(durationMs[op]! > 0)) continue;
    known++;
    const ms = (completedNs[op]! - startedNs[op]!) / 1e6;
    if (!(Math.abs(ms - durationMs[op]!) <= 1e-3 * Math.max(1, ms))) return false;
  }
  return known > 0;
}
