/** The ring's collectives and P2P calls as the flight recorder would tell them, so that all methods take them as they are. */
import { getOrInsert } from "../../base/group-by.ts";
import {
  COMPLETED,
  SCHEDULED,
  STARTED,
  type DumpGroup,
  type FlightDump,
  type OperatorTable,
} from "../../model/operators.ts";
import type { Communicator } from "../../model/probe.ts";
import { allocateColumns } from "../operator-columns.ts";
import { COLLECTIVES, DTYPES, FLAG, KIND, RECORD } from "./layout.ts";
import type { Records } from "./records.ts";
import type { RingBytes } from "./ring-bytes.ts";

/** What the operators are read from: `kept` maps the ring's communicators to those of the list. */
interface OperatorSource {
  readonly ring: RingBytes;
  readonly records: Records;
  readonly communicators: readonly Communicator[];
  readonly kept: Int32Array;
  /** Communicators whose proxy has waited for the wire or for data for long: their last operator has not ended. */
  readonly waiting: ReadonlySet<number>;
}

type RingOperators = Pick<FlightDump, "groups" | "ops" | "timing" | "unknownEnds">;

export function readOperators(source: OperatorSource): RingOperators {
  const { communicators } = source;
  const rows = operatorRows(source);
  const ops = fill(source, rows);
  reopenWaiting(source.waiting, ops);
  const flags = rows.at.map((at) => source.ring.view.getUint8(at + RECORD.flags));
  const unknownEnds = settleEnds(communicators, flags, ops);
  const timing = settleStarts(ops);
  settleBatches(ops);
  const groups = communicators.map(({ id, name, rank, size, collectives }): DumpGroup => ({
    name: id,
    desc: name,
    ranks: null,
    own: { groupRank: rank, size },
    enqueued: collectives,
    started: -1,
    completed: -1,
  }));
  return { groups, ops, timing, unknownEnds };
}

/** Offsets of the operators' records. Where plug-in and shim both recorded, each call is there twice: the plug-in's count. */
function operatorRows({ ring: { view }, records, kept }: OperatorSource): Records {
  const at = new Float64Array(records.at.length);
  const ticket = new Float64Array(records.at.length);
  let hasPlugin = false;
  let count = 0;
  for (let pass = 0; pass < 2; pass++) {
    count = 0;
    for (let i = 0; i < records.at.length; i++) {
      const from = records.at[i]!;
      const kind = view.getUint8(from + RECORD.kind);
      if (kind !== KIND.collective && kind !== KIND.p2p) continue;
      if ((kept[view.getUint16(from + RECORD.group, true)] ?? -1) < 0) continue;
      const isShim = (view.getUint8(from + RECORD.flags) & FLAG.shim) !== 0;
      if (pass === 0) hasPlugin ||= !isShim;
      else if (hasPlugin && isShim) continue;
      at[count] = from;
      ticket[count++] = records.ticket[i]!;
    }
  }
  return { at: at.subarray(0, count), ticket: ticket.subarray(0, count), torn: 0 };
}

function fill(source: OperatorSource, rows: Records): OperatorTable {
  const { ring, communicators, kept } = source;
  const { view } = ring;
  const n = rows.at.length;
  const t = allocateColumns(n);
  t.recordId.set(rows.ticket);
  t.peer.fill(-1);
  t.dtype.fill(-1);
  const names: string[] = [...COLLECTIVES];
  const nameOfPeer = new Map<string, number>();
  for (let i = 0; i < n; i++) {
    const at = rows.at[i]!;
    const group = kept[view.getUint16(at + RECORD.group, true)]!;
    const own = communicators[group]!;
    const func = view.getUint8(at + RECORD.func);
    const dtype = view.getUint8(at + RECORD.dtype);
    const elements =
      view.getUint32(at + RECORD.a, true) + view.getUint32(at + RECORD.a + 4, true) * 2 ** 32;
    t.group[i] = group;
    t.createdNs[i] = ring.ns(at + RECORD.issuedNs);
    t.startedNs[i] = ring.ns(at + RECORD.startedNs);
    t.completedNs[i] = ring.ns(at + RECORD.endedNs);
    t.durationMs[i] = (t.completedNs[i]! - t.startedNs[i]!) / 1e6;
    t.inputNumel[i] = t.outputNumel[i] = elements;
    if (dtype < DTYPES.length) t.dtype[i] = dtype;
    // A table of signed numbers; a job that wraps it has issued two thousand million calls.
    const number = view.getUint32(at + RECORD.b, true) & 0x7fff_ffff;
    if (view.getUint8(at + RECORD.kind) === KIND.p2p) {
      const peer = view.getInt32(at + RECORD.c, true);
      const isSend = func === 1;
      t.isP2p[i] = 1;
      t.p2pSeq[i] = number;
      t.isSend[i] = isSend ? 1 : 0;
      t.peer[i] = peer >= 0 && peer < own.size ? peer : -1;
      // The flight recorder's names, ranks of the group.
      const name = isSend ? `send ${own.rank}->${peer}` : `recv ${own.rank}<-${peer}`;
      const id = getOrInsert(nameOfPeer, name, () => names.push(name) - 1);
      t.name[i] = id;
      continue;
    }
    t.seq[i] = number;
    t.name[i] = func < COLLECTIVES.length ? func : 0;
    // The count is that of one rank's part.
    if (func === ALL_GATHER || func === GATHER) t.outputNumel[i] = elements * own.size;
    if (func === REDUCE_SCATTER || func === SCATTER) t.inputNumel[i] = elements * own.size;
  }
  return { count: n, ...t, names, dtypes: DTYPES };
}

const ALL_GATHER = 2;
const REDUCE_SCATTER = 3;
const GATHER = 7;
const SCATTER = 8;

/**
 * NCCL may report the end of a kernel that still waits for the last bytes of a dead connection (seen with 2.28.9: the
 * record ends, the proxy waits for the step, and PyTorch's event never completes). The proxy is right.
 */
function reopenWaiting(waiting: ReadonlySet<number>, ops: OperatorTable): void {
  const { group, isP2p, completedNs, durationMs } = ops;
  const left = new Set(waiting);
  for (let i = ops.count - 1; i >= 0 && left.size > 0; i--) {
    if (!left.delete(group[i]!) || isP2p[i] === 1) continue;
    completedNs[i] = NaN;
    durationMs[i] = NaN;
  }
}

/**
 * What each operator's times say of its state. Operators of one communicator (of P2P: with one peer) end in the order of
 * their calls, so that one without an end before one that has an end lost it. What nobody times (a call without
 * events, or captured into a graph) must not look hung: it counts as completed, and how many of them nothing later
 * proves to have ended is returned. A communicator of one rank runs no kernel of NCCL's.
 */
function settleEnds(
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
function settleStarts(ops: OperatorTable): boolean {
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
function settleBatches({
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
