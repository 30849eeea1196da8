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
  /** Whether it waits in an operator with somebody of whom nothing is known, not even the rank. */
  readonly waitsUnseen: boolean;
  /** Groups with P2P operators whose counter shows something pending that no entry does. */
  readonly hiddenP2p: readonly number[];
}

export function rankStates(job: Job): Map<Rank, RankState> {
  const states = new Map<Rank, RankState>();
  for (const dump of job.dumps.values()) states.set(dump.rank, stateFromDump(job, dump));
  // Counters of a running job lag: what only those of dumps that were cut off show as pending is pending if something stands.
  const isCut = (rank: Rank): boolean => job.dumps.get(rank)!.dump.isCut;
  const stands = [...states.values()].some(({ rank, heads }) => !isCut(rank) && heads.length > 0);
  if (!stands && job.watchdog.length === 0)
    for (const [rank, state] of states) if (isCut(rank)) states.set(rank, { ...state, heads: [] });
  // Pending operators everywhere and not one of them running: the starts were not recorded after all.
  const stuck = [...states.values()].filter(({ heads }) => heads.length > 0);
  const isRunning = ({ heads, timing, waitsUnseen }: RankState): boolean =>
    heads.some(({ started }) => started) || (timing && waitsUnseen);
  if (stuck.length > 1 && !stuck.some(isRunning)) {
    for (const [rank, state] of states) states.set(rank, { ...state, timing: false });
  }
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
  const hasEntries = new Set<number>();
  let anyCompleted = false;
  let waitsUnseen = false;
  for (let i = 0; i < ops.count; i++) {
    const group = groupIds[ops.group[i]!]!;
    const isP2p = ops.isP2p[i] === 1;
    hasEntries.add(group);
    if (!isP2p) enqueued.set(group, Math.max(enqueued.get(group) ?? 0, ops.seq[i]!));
    if (ops.state[i] === COMPLETED) {
      anyCompleted = true;
      continue;
    }
    // Of a group with unknown members the places are not known either.
    const isUnseen = (job.groups[group]?.unknownMembers ?? 0) > 0;
    if (isUnseen && (!dump.timing || ops.state[i] === STARTED)) waitsUnseen = true;
    const peer = isP2p && !isUnseen ? (job.groups[group]?.ranks[ops.peer[i]!] ?? -1) : -1;
    // A peer that its group does not have cannot be waited for.
    if (isP2p && peer < 0) continue;
    const key = isP2p ? `${group}/${peer}/${ops.isSend[i]}` : String(group);
    if (headOf.has(key)) continue;
    headOf.add(key);
    if (!isP2p) firstPending.set(group, ops.seq[i]!);
    const seq = isP2p ? ops.p2pSeq[i]! : ops.seq[i]!;
    const started = ops.state[i] === STARTED;
    heads.push({ group, seq, isP2p, peer, isSend: ops.isSend[i] === 1, op: i, started });
  }
  // The watchdog moves the counters when it lets go of an operator, up to a second after its end: where
  // entries tell of a group, they know better. A dump of active entries only has none of those that ended.
  const onlyActive = hasEntries.size > 0 && (dump.onlyActive === true || !anyCompleted);
  const hiddenP2p: number[] = [];
  for (const [index, group] of dump.groups.entries()) {
    const id = groupIds[index]!;
    const { carriesP2p } = job.groups[id]!;
    const entriesTell = hasEntries.has(id) || onlyActive;
    if (carriesP2p && !entriesTell && group.enqueued > group.completed) {
      if (!dump.timing || group.started > group.completed) hiddenP2p.push(id);
    }
    if (!carriesP2p && group.enqueued >= 0) {
      enqueued.set(id, Math.max(enqueued.get(id) ?? 0, group.enqueued));
    }
    const last = enqueued.get(id);
    if (last === undefined) continue;
    const pending = firstPending.get(id);
    const useCounter = !carriesP2p && !entriesTell && group.completed >= 0;
    const done =
      pending !== undefined ? pending - 1 : useCounter ? Math.min(group.completed, last) : last;
    completed.set(id, done);
    // Entries may be gone (only a counter was dumped): the counter still says what is pending.
    if (pending === undefined && done < last) {
      const started = group.started > done;
      heads.push({
        group: id,
        seq: done + 1,
        isP2p: false,
        peer: -1,
        isSend: false,
        op: -1,
        started,
      });
    }
  }
  return { rank, timing: dump.timing, enqueued, completed, heads, waitsUnseen, hiddenP2p };
}
