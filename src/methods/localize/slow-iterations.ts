/** Which iterations are the slow ones, for comparing them with the others: from the tracker, or from own times. */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { IterationSeries, TrackedSeries } from "../../model/series.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";
import type { OwnTimeSuspect } from "./own-time.ts";
import type { SlowerFloor } from "./slower-floor.ts";

export interface SlowIterations {
  readonly isSlow: (iteration: number) => boolean;
  /** The first of them; null where there is no before. */
  readonly from: number | null;
  readonly until: number | null;
  /** Whether they follow each other; else they were picked one by one. */
  readonly isLasting: boolean;
  /** Of picked ones: how many must be one rank's own, so that it is no chance. */
  readonly leastHabit?: number;
}

/** Irregular iterations that make a pattern worth a comparison. */
const FEWEST = 3;
const IRREGULAR = 1.1;

/** `slower`: communication that got slow from an iteration on, where some did. */
export function slowIterations(
  tracked: readonly TrackedSeries[],
  suspects: readonly OwnTimeSuspect[],
  accounts: ReadonlyMap<Rank, TimeBreakdown>,
  slower: SlowerFloor | null,
): SlowIterations | null {
  const [first] = suspects;
  const ownMs = first && first.kind !== "always" ? first.afterMs - first.beforeMs : 0;
  if (slower && slower.growthMs > ownMs) {
    const { from, to, until } = slower;
    return { isSlow: (n) => n >= from && n <= to, from, until, isLasting: true };
  }
  if (first && first.kind !== "always") {
    const account = accounts.get(first.rank)!;
    const numbers = new Set(first.slow.map((i) => account.iteration[i]!));
    const isLasting = first.kind === "slower";
    const { iteration: from, until } = first;
    return { isSlow: (n) => numbers.has(n), from, until, isLasting };
  }
  const worst = tracked
    .flatMap(({ episodes }) => episodes.filter(({ type }) => type === "degradation"))
    .reduce<TrackedSeries["episodes"][number] | null>(
      (a, b) => (a && a.wastedMs >= b.wastedMs ? a : b),
      null,
    );
  if (worst) {
    const { from, to, isOpen } = worst;
    const until = isOpen ? null : to;
    return { isSlow: (n) => n >= from && n <= to, from, until, isLasting: true };
  }
  return irregularOnes(tracked);
}

/** What some iterations of a series take as a rule; NaN where it has none of them. */
export function typicalMs(
  { iteration, durationMs }: IterationSeries,
  numbers: readonly number[],
): number {
  const took = numbers.map((number) => durationMs[iteration.lastIndexOf(number)] ?? NaN);
  return median(took.filter((ms) => ms > 0));
}

/** Iterations that most series have above their level. */
function irregularOnes(tracked: readonly TrackedSeries[]): SlowIterations | null {
  const votes = new Map<number, number>();
  for (const { series, levelMs } of tracked) {
    for (const [i, number] of series.iteration.entries()) {
      if (series.durationMs[i]! > IRREGULAR * levelMs[i]!)
        votes.set(number, (votes.get(number) ?? 0) + 1);
    }
  }
  const numbers = [...votes].filter(([, count]) => 2 * count > tracked.length).map(([n]) => n);
  if (numbers.length < FEWEST) return null;
  numbers.sort((a, b) => a - b);
  const all = new Set(numbers);
  const [from, until] = [numbers[0]!, numbers.at(-1)!];
  return { isSlow: (n) => all.has(n), from, until, isLasting: false };
}
