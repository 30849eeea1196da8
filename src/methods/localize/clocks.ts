/**
 * How far ranks' clocks are apart, from the operators themselves: a collective ends on all members at once, and a
 * receive when its send does. The localizer compares durations and needs no common clock; what it says about when,
 * and code that puts records of several ranks on one axis, does.
 */
import { apart, spreadOffsets, type Neighbours } from "../../maths/clock-offsets.ts";
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { RankOperators } from "../../model/rank-operators.ts";

/** Ends that two ranks are compared by. */
const ENOUGH = 64;
const FEWEST = 5;

/** Milliseconds that a rank's clock is ahead of the typical one; ranks that share no operators with others are absent. */
export function clockOffsets(
  all: readonly RankOperators[],
  groups: readonly Group[],
): Map<Rank, number> {
  const ends = new Map(all.map((operators) => [operators.rank, endsOf(operators)]));
  const offsets = spreadOffsets(ends.keys(), () => throughGroups(ends, groups));
  return new Map([...offsets].map(([rank, { ahead }]) => [rank, ahead]));
}

/** Group → sequence number → when it ended, milliseconds since 1970. */
type Ends = ReadonlyMap<number, ReadonlyMap<number, number>>;

function endsOf({ ops, groupIds, epochNs, hasSequence }: RankOperators): Ends {
  const ends = new Map<number, Map<number, number>>();
  if (!hasSequence) return ends;
  const epochMs = Number(epochNs / 1_000_000n);
  for (let op = ops.count - 1; op >= 0; op--) {
    const group = groupIds[ops.group[op]!] ?? -1;
    const ns = ops.completedNs[op]!;
    if (ops.isP2p[op] === 1 || group < 0 || Number.isNaN(ns)) continue;
    let list = ends.get(group);
    if (!list) ends.set(group, (list = new Map()));
    if (list.size < ENOUGH) list.set(ops.seq[op]!, epochMs + ns / 1e6);
  }
  return ends;
}

/** From a rank through the groups it is in to their members; a group is gone through once. */
function throughGroups(ends: ReadonlyMap<Rank, Ends>, groups: readonly Group[]): Neighbours {
  const passed = new Set<number>();
  return function* neighbours(rank, isKnown) {
    for (const [group, own] of ends.get(rank)!) {
      if (passed.has(group)) continue;
      passed.add(group);
      for (const member of groups[group]?.ranks ?? []) {
        const theirs = ends.get(member)?.get(group);
        if (!theirs || isKnown(member)) continue;
        const differences = apart(own, theirs);
        if (differences.length >= FEWEST) yield [member, median(differences)];
      }
    }
  };
}

/** Clocks of a cluster agree within milliseconds, and can be measured to a tenth of a second: less is measurement error. */
export const CLOCK_OFF_MS = 500;

/** How far a clock is ahead, where it is off at all. */
export function farAhead(ms: number): number {
  return Math.abs(ms) >= CLOCK_OFF_MS ? ms : 0;
}
