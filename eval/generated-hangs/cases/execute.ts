import type { SimGroup } from "../../../src/simulate/flight/rank-records.ts";
import { noise } from "./noise.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import { isP2p } from "../../../src/simulate/flight/op.ts";
import { opBytes, pairs } from "./op-rules.ts";
import type { RankRun, RankState } from "./rank-run.ts";
import { advance, hasEnded, link } from "./rank-run.ts";

/** What is broken, per rank as an index into its program; Infinity where nothing is. */
export interface Faults {
  /** The CPU never issues this operator nor a later one. */
  readonly stallAt: Float64Array;
  /** The GPU never starts this operator nor a later one. */
  readonly hangAt: Float64Array;
  /** A collective that starts everywhere and ends nowhere: group and number of the call, or null. */
  readonly lost: { readonly group: number; readonly seq: number } | null;
}

export function noFaults(ranks: number): Faults {
  return {
    stallAt: new Float64Array(ranks).fill(Infinity),
    hangAt: new Float64Array(ranks).fill(Infinity),
    lost: null,
  };
}

/** One meeting of a group's members that has begun and not ended. */
export interface Meeting {
  readonly group: number;
  /** Ranks that have to come. */
  readonly expected: readonly number[];
  /** Those that have started, and with which operator. */
  readonly came: number[];
  readonly ops: number[];
  /** When the last of them started, and the most bytes that one of them moves. */
  startNs: number;
  bytes: number;
  /** All came and it never ends: they do not fit together, or the network lost it. */
  dead: boolean;
}

export interface Execution {
  readonly runs: readonly RankRun[];
  /** Meetings that never ended, by group and key. */
  readonly open: readonly ReadonlyMap<number, Meeting>[];
}

/** Sends end as soon as their data is in a buffer (small messages), or only with the receiver. */
export interface Engine {
  readonly eagerSends: boolean;
  readonly seed: number;
}

/**
 * Runs the programs to a fixpoint: the earliest time at which each event can happen is the maximum over
 * what it waits for plus a duration, so the order in which ranks are visited does not matter and no
 * clock is needed. Whatever has no time in the end never happens: that is the hang.
 */
export function execute(
  programs: readonly (readonly Op[])[],
  groups: readonly SimGroup[],
  faults: Faults,
  engine: Engine,
): Execution {
  const runs = programs.map(link);
  const open: Map<number, Meeting>[] = groups.map(() => new Map());
  const queue = runs.map((_, rank) => rank);
  const queued = new Uint8Array(runs.length).fill(1);
  const wake = (rank: number): void => {
    if (queued[rank] === 1) return;
    queued[rank] = 1;
    queue.push(rank);
  };

  const end = (rank: number, index: number, timeNs: number): void => {
    const run = runs[rank] as RankState;
    run.endNs[index] = timeNs;
    run.ended++;
    if (timeNs > run.lastEndNs) run.lastEndNs = timeNs;
    wake(rank);
  };

  const start = (rank: number, index: number, timeNs: number): void => {
    const run = runs[rank] as RankState;
    const op = run.ops[index] as Op;
    run.startNs[index] = timeNs;
    const group = groups[op.group] as SimGroup;
    const bytes = opBytes(op);
    if (engine.eagerSends && op.kind === "send") end(rank, index, timeNs + durationNs(bytes));
    const key = meetingKey(op, run.slot[index] as number, group, rank);
    const meetings = open[op.group] as Map<number, Meeting>;
    let meeting = meetings.get(key);
    if (meeting === undefined) {
      const expected = isP2p(op) ? [rank, group.ranks[op.peer] as number] : group.ranks;
      meeting = { group: op.group, expected, came: [], ops: [], startNs: 0, bytes: 0, dead: false };
      meetings.set(key, meeting);
    }
    meeting.came.push(rank);
    meeting.ops.push(index);
    meeting.startNs = Math.max(meeting.startNs, timeNs);
    meeting.bytes = Math.max(meeting.bytes, bytes);
    if (meeting.came.length < meeting.expected.length) return;
    const lost = faults.lost;
    const isLost = lost?.group === op.group && !isP2p(op) && lost.seq === run.slot[index];
    if (isLost || !fits(meeting, runs)) {
      meeting.dead = true;
      return;
    }
    meetings.delete(key);
    const endNs =
      meeting.startNs + durationNs(meeting.bytes) + 20_000 * noise(engine.seed, op.group, key, 7);
    meeting.came.forEach((member, i) => {
      const memberIndex = meeting.ops[i] as number;
      if (!hasEnded(runs[member] as RankState, memberIndex)) end(member, memberIndex, endNs);
    });
  };

  for (let at = 0; at < queue.length; at++) {
    const rank = queue[at] as number;
    queued[rank] = 0;
    const limit = Math.min(faults.stallAt[rank] as number, (runs[rank] as RankState).ops.length);
    advance(
      runs[rank] as RankState,
      rank,
      limit,
      faults.hangAt[rank] as number,
      engine.seed,
      start,
    );
  }
  return { runs, open };
}

/** A latency, and 150 GB/s. */
function durationNs(bytes: number): number {
  return 25_000 + bytes / 150;
}

/** Whether all operators of a full meeting pair with the first one; a send always fits its recv. */
function fits(meeting: Meeting, runs: readonly RankRun[]): boolean {
  const opOf = (i: number): Op =>
    runs[meeting.came[i] as number]?.ops[meeting.ops[i] as number] as Op;
  const first = opOf(0);
  if (isP2p(first)) return true;
  return meeting.came.every((_, i) => pairs(first, opOf(i)));
}

/** The same number for all who meet, different for every meeting of a group. */
function meetingKey(op: Op, slot: number, group: SimGroup, rank: number): number {
  if (!isP2p(op)) return slot;
  const self = group.ranks.indexOf(rank);
  const size = group.ranks.length;
  const direction = op.kind === "send" ? self * size + op.peer : op.peer * size + self;
  return -1 - (slot * size * size + direction);
}
