/** When operators were issued, and when they ran as far as the record tells. */
import type { RankOperators } from "../../model/rank-operators.ts";

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
