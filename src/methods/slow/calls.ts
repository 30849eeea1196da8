/** The collectives of a job: which operator of which rank is the same call, as one table a group. */
import { getOrInsert } from "../../base/group-by.ts";
import type { Blocks } from "./blocks.ts";

/** Entries that all tables may have: 1 GB. Sequence numbers of damaged records can lie anywhere. */
const MOST_ENTRIES = 1 << 28;

/** Calls of one group within the blocks. */
export interface GroupCalls {
  /** In Job.groups. */
  readonly id: number;
  /** Places of the members that recorded some. */
  readonly members: Int32Array;
  readonly calls: number;
  /** Call-major: the member's operator, or -1. */
  readonly op: Int32Array;
  /** Of each call, the block in which the first member that recorded it has it. */
  readonly block: Int32Array;
}

export function collectives({ ranks, numbers, from, to }: Blocks): GroupCalls[] {
  const blocks = numbers.length;
  const spans = new Map<number, { first: number; last: number; members: number[] }>();
  const each = (visit: (place: number, block: number, op: number, group: number) => void): void => {
    for (const [place, { ops, groupIds, hasSequence }] of ranks.entries())
      for (let k = 0; hasSequence && k < blocks; k++)
        for (let op = from[place * blocks + k]!; op < to[place * blocks + k]!; op++) {
          const group = groupIds[ops.group[op]!] ?? -1;
          if (group >= 0 && ops.isP2p[op] === 0 && ops.seq[op]! > 0 && ops.durationMs[op]! >= 0)
            visit(place, k, op, group);
        }
  };
  each((place, _block, op, group) => {
    const seq = ranks[place]!.ops.seq[op]!;
    const span = getOrInsert(spans, group, () => ({
      first: seq,
      last: seq,
      members: [] as number[],
    }));
    span.first = Math.min(span.first, seq);
    span.last = Math.max(span.last, seq);
    if (span.members.at(-1) !== place) span.members.push(place);
  });
  let entries = 0;
  const tables = new Map<
    number,
    GroupCalls & { readonly first: number; readonly slot: Map<number, number> }
  >();
  for (const [id, { first, last, members }] of spans) {
    const calls = last - first + 1;
    entries += calls * members.length;
    if (members.length < 2 || entries > MOST_ENTRIES) continue;
    tables.set(id, {
      id,
      members: Int32Array.from(members),
      calls,
      op: new Int32Array(calls * members.length).fill(-1),
      block: new Int32Array(calls).fill(-1),
      first,
      slot: new Map(members.map((place, m) => [place, m])),
    });
  }
  each((place, block, op, group) => {
    const table = tables.get(group);
    if (!table) return;
    const call = ranks[place]!.ops.seq[op]! - table.first;
    table.op[call * table.members.length + table.slot.get(place)!] = op;
    if (table.block[call] === -1) table.block[call] = block;
  });
  return [...tables.values()];
}
