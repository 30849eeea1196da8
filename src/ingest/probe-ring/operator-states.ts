/** What the times of a ring's operators say of their states. */
import { COMPLETED, SCHEDULED, STARTED, type OperatorTable } from "../../model/operators.ts";
import type { Communicator } from "../../model/probe.ts";
import { FLAG } from "./layout.ts";

/**
 * What each operator's times say of its state. Operators of one communicator (of P2P: with one peer) end in the order of
 * their calls, so that one without an end before one that has an end lost it. What nobody times (a call without
 * events, or captured into a graph) must not look hung: it counts as completed, and how many of them nothing later
 * proves to have ended is returned. A communicator of one rank runs no kernel of NCCL's.
 */
export function settleEnds(
  communicators: readonly Communicator[],
  flagsOf: ArrayLike<number>,
  ops: OperatorTable,
): number {
  const { state, group, isP2p, peer, isSend, startedNs, completedNs } = ops;
  const laterEnded = new Set<number>();
  let unknown = 0;
  for (let i = ops.count - 1; i >= 0; i--) {
    // Below 2^53: 256 communicators, peers up to 2^20.
    const line = isP2p[i] === 1 ? (peer[i]! + 2) * 2 + isSend[i]! : 0;
    const key = line * 4096 + group[i]!;
    if (Number.isFinite(completedNs[i]!)) {
      state[i] = COMPLETED;
      laterEnded.add(key);
      continue;
    }
    const flags = flagsOf[i]!;
    const isOpen = (flags & (FLAG.untimed | FLAG.captured | FLAG.failed)) !== 0;
    const isLone = communicators[group[i]!]!.size === 1;
    if (laterEnded.has(key) || isLone) state[i] = COMPLETED;
    else if (isOpen) {
      state[i] = COMPLETED;
      if ((flags & FLAG.failed) === 0) unknown++;
    } else state[i] = Number.isFinite(startedNs[i]!) ? STARTED : SCHEDULED;
  }
  return unknown;
}

/**
 * Whether starts on the GPU are known. They may be known of some communicators only: before kernel events (NCCL 2.26) a
 * start is seen where a proxy moves data, and none does inside a machine. Where nothing is seen to run, and the first
 * operator that is pending is of such a communicator, it is the one that runs.
 */
export function settleStarts(ops: OperatorTable): boolean {
  const { state, group, startedNs } = ops;
  const known = new Set<number>();
  const ended = new Set<number>();
  let first = -1;
  let isRunning = false;
  for (let i = 0; i < ops.count; i++) {
    if (Number.isFinite(startedNs[i]!)) known.add(group[i]!);
    if (state[i] === COMPLETED) ended.add(group[i]!);
    else if (first < 0) first = i;
    if (state[i] === STARTED) isRunning = true;
  }
  if (known.size === 0) return false;
  const isBlind = first >= 0 && ended.has(group[first]!) && !known.has(group[first]!);
  if (isBlind && !isRunning) state[first] = STARTED;
  return true;
}

/**
 * Sends and receives that were issued as a batch run in one kernel and end together; the flight recorder gives them one
 * number, the ring counts calls. Kernels of one communicator never overlap, so that what overlaps is one batch.
 */
export function settleBatches({
  count,
  isP2p,
  group,
  state,
  startedNs,
  completedNs,
  p2pSeq,
}: OperatorTable): void {
  const last = new Map<number, number>();
  for (let i = 0; i < count; i++) {
    if (isP2p[i] !== 1) continue;
    const before = last.get(group[i]!);
    last.set(group[i]!, i);
    if (
      before === undefined ||
      !(Number.isFinite(startedNs[i]!) && Number.isFinite(startedNs[before]!))
    )
      continue;
    const isPending = state[before] === STARTED && state[i] === STARTED;
    if (isPending || startedNs[i]! < completedNs[before]!) p2pSeq[i] = p2pSeq[before]!;
  }
}
