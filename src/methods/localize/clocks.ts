/**
 * How far ranks' clocks are apart, from the operators themselves: a collective ends on all members at once, and a
 * receive when its send does. The localizer compares durations and needs no common clock; what it says about when,
 * and whoever puts records of several ranks on one axis, does.
 */
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
  const known = new Map<Rank, number>();
  // From one rank through the groups it is in to their members, and on: a few hops lead everywhere.
  for (const start of ends.keys()) {
    if (known.has(start)) continue;
    const offsets = spreadFrom(start, ends, groups);
    const typical = median([...offsets.values()]);
    for (const [rank, ms] of offsets) known.set(rank, ms - typical);
  }
  return known;
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

function spreadFrom(
  start: Rank,
  ends: ReadonlyMap<Rank, Ends>,
  groups: readonly Group[],
): Map<Rank, number> {
  const offsets = new Map<Rank, number>([[start, 0]]);
  const queue = [start];
  const passed = new Set<number>();
  for (let rank = queue.shift(); rank !== undefined; rank = queue.shift()) {
    for (const [group, own] of ends.get(rank)!) {
      if (passed.has(group)) continue;
      passed.add(group);
      for (const member of groups[group]?.ranks ?? []) {
        const theirs = ends.get(member)?.get(group);
        if (!theirs || offsets.has(member)) continue;
        const apart = [...theirs].flatMap(([seq, ms]) => {
          const other = own.get(seq);
          return other === undefined ? [] : [ms - other];
        });
        if (apart.length < FEWEST) continue;
        offsets.set(member, offsets.get(rank)! + median(apart));
        queue.push(member);
      }
    }
  }
  return offsets;
}
