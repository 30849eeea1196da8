/** Time outside communication, as the localizer counts it: handed in, because what overlaps is the method's to know. */
import type { Rank } from "../../model/ids.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { middle } from "./middle.ts";

export interface OwnTime {
  readonly iteration: Float64Array;
  readonly totalMs: Float64Array;
  readonly ownMs: Float64Array;
  /** Equal for ranks that run the same program. */
  readonly program: number;
}

export type OwnTimesOf = (ranks: readonly RankOperators[]) => ReadonlyMap<Rank, OwnTime>;

/** In one iteration; NaN where it is not known. */
export function ownIn(own: OwnTime | undefined, iteration: number): number {
  const at = own?.iteration.indexOf(iteration) ?? -1;
  return at < 0 ? NaN : own!.ownMs[at]!;
}

/** The median over some iterations. */
export function usualOwn(own: OwnTime | undefined, iterations: readonly number[]): number {
  return middle(iterations.map((iteration) => ownIn(own, iteration)));
}

/**
 * Beyond what the rank itself needs in healthy iterations; where there were none, beyond what ranks need that run the
 * same program.
 */
export function ownExcess(
  all: ReadonlyMap<Rank, OwnTime>,
  rank: Rank,
  iteration: number,
  healthy: readonly number[],
): number {
  const own = all.get(rank);
  if (!own) return NaN;
  if (healthy.length > 0) return ownIn(own, iteration) - usualOwn(own, healthy);
  const peers = [...all].filter(([, { program }]) => program === own.program);
  return ownIn(own, iteration) - middle(peers.map(([, peer]) => ownIn(peer, iteration)));
}
