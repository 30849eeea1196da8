/** Who was compared with whom, in milliseconds an iteration. */
import type { Compared } from "../../../model/facts.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Means } from "./means.ts";

/** Ranks that are shown: the suspects and as many of their peers as fit. */
const MOST_SHOWN = 24;
/** Where iterations are not known, figures are milliseconds a second. */
const SECOND_MS = 1000;

export interface Comparison {
  readonly ranks: readonly Rank[];
  readonly places: readonly number[];
  /** Those they were compared with. */
  readonly group: { readonly name: string; readonly places: ArrayLike<number> };
  /** Whether it was about what ranks send. */
  readonly isWire: boolean;
  readonly iterations: number;
  readonly before: Means;
  readonly since: Means;
  /** Iterations before and since, milliseconds; NaN: not known. */
  readonly iterationMs: readonly [before: number, since: number];
  /** Shares of a block: distance from the peers before and since, and what it does by chance. */
  readonly apart: readonly [before: number, since: number];
  readonly chance: number;
}

export function comparedOf(comparison: Comparison): Compared {
  const { ranks, places, group, isWire, before, since, iterations } = comparison;
  const [usualMs, nowMs] = comparison.iterationMs.map((ms) => (ms > 0 ? ms : SECOND_MS)) as [
    number,
    number,
  ];
  const own = places.slice(0, MOST_SHOWN);
  const shown = [...own, ...nearest(group.places, own, MOST_SHOWN - own.length)];
  const pair = (share: (means: Means) => number): [number, number] => [
    rounded(share(before) * usualMs),
    rounded(share(since) * nowMs),
  ];
  const wires = shown.map((place) => ({
    name: `what rank ${ranks[place]!} sends`,
    ranks: [ranks[place]!],
    leastMs: pair(({ onWire }) => onWire[place]!),
  }));
  return {
    group: group.name,
    iterations: Number.isNaN(iterations) ? 0 : iterations,
    leadMs: [rounded(comparison.apart[0] * usualMs), rounded(comparison.apart[1] * nowMs)],
    chanceMs: rounded(comparison.chance * nowMs),
    ranks: shown.map((place) => ({
      rank: ranks[place]!,
      insideMs: pair(({ inside }) => inside[place]!),
      ownMs: pair(({ inside }) => 1 - inside[place]!),
    })),
    ...(isWire ? { wires } : {}),
  };
}

/** Members next to the suspects in the group's order. */
function nearest(members: ArrayLike<number>, own: readonly number[], many: number): number[] {
  const all = Array.from(members);
  const at = Math.max(0, all.indexOf(own[0] ?? -1));
  const room = many + own.length;
  const from = Math.max(0, Math.min(at - (many >> 1), all.length - room));
  return all
    .slice(from, from + room)
    .filter((place) => !own.includes(place))
    .slice(0, Math.max(0, many));
}

/** Microseconds: no clock knows better. */
function rounded(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.round(ms * 1000) / 1000;
}
