/** When somebody became slow, and for how long: for the verdict. */
import type { SlowTimes } from "../../model/facts.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { Account } from "./account.ts";

/** `last`: the last slow block; -1 where it lasts. */
export function slowTimes(
  { numbers, areIterations, lengthMs }: Account,
  { iteration, startMs }: RankOperators,
  moment: number,
  spikes: Int32Array | null,
  last: number,
): SlowTimes {
  const first = spikes?.[0] ?? moment;
  const isFromStart = spikes === null && moment === 0;
  const msOf = (block: number): number =>
    areIterations ? (startMs[iteration.indexOf(numbers[block]!)] ?? NaN) : numbers[block]!;
  const timeOf = (ms: number): string | null =>
    Number.isFinite(ms) ? new Date(ms).toISOString() : null;
  return {
    slowDown: true,
    sinceStart: isFromStart,
    recordFrom: areIterations ? (iteration[0] ?? null) : null,
    iteration: isFromStart || !areIterations ? 1 : numbers[first]!,
    until: last < 0 || !areIterations ? null : numbers[last]!,
    from: timeOf(isFromStart && areIterations ? (startMs[0] ?? NaN) : msOf(first)),
    to: last < 0 ? null : timeOf(msOf(last) + lengthMs[last]!),
  };
}
