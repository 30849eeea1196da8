/**
 * Where each rank stands: for every group the last collective that it enqueued and completed, and the
 * first operators that it has not completed (its heads). Taken from flight-recorder dumps.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job, RankDump } from "../../model/job.ts";
import { COMPLETED, STARTED } from "../../model/operators.ts";

/** The first uncompleted operator of a rank in one group (or, for P2P, with one peer). */
export interface Head {
  readonly group: number;
  /** Sequence number of a collective; the rank's own counter for P2P. */
  readonly seq: number;
  readonly isP2p: boolean;
  /** Global rank of the other side of a P2P operator; -1 for collectives. */
  readonly peer: Rank;
  readonly isSend: boolean;
  /** Index into the rank's operator table; -1 where only a counter tells of it. */
  readonly op: number;
  /** Whether the operator is known to run on the GPU. */
  readonly started: boolean;
}

export interface RankState {
  readonly rank: Rank;
  /** Whether the inputs say which operators have started. */
  readonly timing: boolean;
  /** Group → last collective enqueued (completed); absent where unknown. */
  readonly enqueued: ReadonlyMap<number, number>;
  readonly completed: ReadonlyMap<number, number>;
  /** In the order in which the rank issued them. */
  readonly heads: readonly Head[];
  /** Groups with P2P operators whose counter shows something pending that no entry does. */
  readonly hiddenP2p: readonly number[];
}

export function rankStates(job: Job): Map<Rank, RankState> {
  const states = new Map<Rank, RankState>();
  for (const dump of job.dumps.values()) states.set(dump.rank, stateFromDump(job, dump));
  return states;
}

function stateFromDump(job: Job, rankDump: RankDump): RankState {
  const { rank, dump, groupIds } = rankDump;
  const { ops } = dump;
  const enqueued = new Map<number, number>();
  const completed = new Map<number, number>();
  const heads: Head[] = [];
  const headOf = new Set<string>();
  const firstPending = new Map<number, number>();
  for (let i = 0; i < ops.count; i++) {
    const group = groupIds[ops.group[i]!]!;
    const isP2p = ops.isP2p[i] === 1;
    if (!isP2p) enqueued.set(group, Math.max(enqueued.get(group) ?? 0, ops.seq[i]!));
    if (ops.state[i] === COMPLETED) continue;
    const key = isP2p ? `${group}/${ops.peer[i]}/${ops.isSend[i]}` : String(group);
    if (headOf.has(key)) continue;
    headOf.add(key);
    if (!isP2p) firstPending.set(group, ops.seq[i]!);
    heads.push({
      group,
      seq: isP2p ? ops.p2pSeq[i]! : ops.seq[i]!,
      isP2p,
      peer: isP2p ? (job.groups[group]?.ranks[ops.peer[i]!] ?? -1) : -1,
      isSend: ops.isSend[i] === 1,
      op: i,
      started: ops.state[i] === STARTED,
    });
  }
  const hiddenP2p: number[] = [];
  for (const [index, group] of dump.groups.entries()) {
    const id = groupIds[index]!;
    if (
      job.groups[id]!.carriesP2p &&
      group.enqueued > group.completed &&
      !heads.some((head) => head.group === id)
    ) {
      if (!dump.timing || group.started > group.completed) hiddenP2p.push(id);
    }
    if (!job.groups[id]!.carriesP2p && group.enqueued >= 0) {
      enqueued.set(id, Math.max(enqueued.get(id) ?? 0, group.enqueued));
    }
    const last = enqueued.get(id);
    if (last === undefined) continue;
    const pending = firstPending.get(id);
    const counter = job.groups[id]!.carriesP2p || group.completed < 0 ? Infinity : group.completed;
    const done = Math.min(counter, pending === undefined ? last : pending - 1, last);
    completed.set(id, done);
    // Entries may be gone (only a counter was dumped): the counter still says what is pending.
    if (pending === undefined && done < last) {
      heads.push({
        group: id,
        seq: done + 1,
        isP2p: false,
        peer: -1,
        isSend: false,
        op: -1,
        started: group.started > done,
      });
    }
  }
  return { rank, timing: dump.timing, enqueued, completed, heads, hiddenP2p };
}
