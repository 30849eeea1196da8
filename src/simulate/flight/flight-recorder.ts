import { getOrInsert } from "../../base/group-by.ts";
import type { Frame } from "../../model/operators.ts";
import { COMPLETED, STARTED } from "../../model/operators.ts";
import { callStack, isAutograd } from "./call-stacks.ts";
import type { SimGroup } from "./rank-records.ts";
import type { Kind, Op } from "./op.ts";
import { isP2p } from "./op.ts";
import type { PyRecord, PyValue } from "./pickle-writer.ts";
import { PyFloat, PyShared, PyTuple } from "./pickle-writer.ts";
import type { RankRecords } from "./rank-records.ts";

export const FLIGHT_VERSIONS = ["2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10"] as const;
export type FlightVersion = (typeof FLIGHT_VERSIONS)[number];

export interface DumpOptions {
  readonly version: FlightVersion;
  /** NCCL's version. */
  readonly library: string;
  /** TORCH_NCCL_ENABLE_TIMING: without it nothing tells that an operator has started. */
  readonly timing: boolean;
  /** TORCH_FR_BUFFER_SIZE: how many of the latest entries are kept. */
  readonly ringSize: number;
  /** Completed entries are left out. */
  readonly onlyActive: boolean;
  /** Sends and receives are issued by batch_isend_irecv, as by Megatron-LM and torch.distributed.pipelining. */
  readonly batched?: boolean;
  readonly stacks: boolean;
  /** False: no entries at all, only configuration and counters. */
  readonly entries: boolean;
  readonly timeoutMs: number;
  /** Nanoseconds since 1970 that the records' times are relative to. */
  readonly epochNs: bigint;
  /** Group index → the process-local pg_id. */
  readonly localIds: ReadonlyMap<number, number>;
}

/** Ready-made, because a string that is made anew for every entry is also hashed anew. */
const COLLECTIVE_NAMES: Readonly<Record<Kind, string>> = {
  all_reduce: "nccl:all_reduce",
  _all_gather_base: "nccl:_all_gather_base",
  _reduce_scatter_base: "nccl:_reduce_scatter_base",
  all_to_all: "nccl:all_to_all",
  broadcast: "nccl:broadcast",
  all_reduce_barrier: "nccl:all_reduce_barrier",
  send: "nccl:send",
  recv: "nccl:recv",
};

/** Indices of the records that a dump with these options shows. */
export function visibleRecords(records: RankRecords, options: DumpOptions): number[] {
  if (!options.entries) return [];
  const first = Math.max(0, records.ops.length - options.ringSize);
  const visible: number[] = [];
  for (let i = first; i < records.ops.length; i++) {
    // The parts of a batch have no events, so that no dump knows them as completed.
    const isPart = options.batched === true && isP2p(records.ops[i] as Op);
    if (!options.onlyActive || isPart || records.state[i] !== COMPLETED) visible.push(i);
  }
  return visible;
}

/**
 * One rank's dump as the object that PyTorch pickles, keys in the order of FlightRecorderDetail.hpp:
 * pg_config sorted by name as text, pg_status by number. A group is listed once its communicator
 * exists, which is when its first operator is issued.
 */
export function flightDump(
  records: RankRecords,
  groups: readonly SimGroup[],
  options: DumpOptions,
): PyRecord {
  const minor = Number(options.version.slice(2));
  const used = [...records.status.keys()].map((index) => groups[index] as SimGroup);
  const localId = (group: number): number => options.localIds.get(group) as number;
  const config = new Map<string, PyValue>();
  for (const group of used.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const ranks = `[${group.ranks.join(", ")}]`;
    config.set(group.name, { name: group.name, desc: group.desc, ranks });
  }
  const status = new Map<string, PyValue>();
  for (const { index } of used.toSorted((a, b) => localId(a.index) - localId(b.index))) {
    const counters = records.status.get(index);
    status.set(String(localId(index)), {
      last_enqueued_collective: counters?.enqueued,
      last_started_collective: options.timing ? counters?.started : -1,
      last_completed_collective: counters?.completed,
    });
  }
  return {
    version: options.version,
    pg_config: config,
    // The library's version came with 2.6 and changed its name with 2.10.
    nccl_version: minor >= 6 && minor < 10 ? options.library : undefined,
    comm_lib_version: minor >= 10 ? options.library : undefined,
    pg_status: status,
    entries: dumpEntries(records, groups, options, minor),
  };
}

function dumpEntries(
  records: RankRecords,
  groups: readonly SimGroup[],
  options: DumpOptions,
  minor: number,
): PyRecord[] {
  const { epochNs, timing } = options;
  const absolute = (ns: number): bigint => epochNs + BigInt(Math.round(ns));
  const frames = new FrameTable();
  // Sizes and group tuples are not memoised by PyTorch, so sharing the JavaScript objects is safe.
  const names = new Map<number, PyTuple>();
  const nameOf = (index: number): PyTuple => {
    const { name, desc } = groups[index] as SimGroup;
    return getOrInsert(names, index, () => new PyTuple([name, desc]));
  };
  // Numbers as pthread_self gives them; the threads of one process lie some gigabytes apart.
  const mainThread = 139_000_000_000_000 + records.rank * 1_048_576 * 257;
  const threads = [String(mainThread), String(mainThread - 15_167_848_000)];
  // The thread of the caller is in dumps of 2.9 and not in those of 2.7 (pytorch PR 155142).
  const hasThreads = minor >= 8;
  const ids = options.batched === true ? batchedIds(records) : null;
  const entryOf = (i: number, isPart: boolean): PyRecord => {
    const op = records.ops[i] as Op;
    const autograd = isAutograd(op);
    const isCompleted = !isPart && records.state[i] === COMPLETED;
    const isStarted = !isPart && timing && (isCompleted || records.state[i] === STARTED);
    return {
      frames: options.stacks ? frames.stack(op) : undefined,
      record_id: records.firstId + (ids?.[i] ?? i),
      pg_id: options.localIds.get(op.group),
      process_group: nameOf(op.group),
      thread_name: hasThreads ? (autograd ? "pt_autograd_0" : "python3") : undefined,
      thread_id: hasThreads ? threads[autograd ? 1 : 0] : undefined,
      collective_seq_id: records.seq[i],
      p2p_seq_id: records.p2pSeq[i],
      op_id: records.opId[i],
      profiling_name: profilingName(op, groups, records.rank),
      time_created_ns: absolute(records.createdNs[i] as number),
      duration_ms: timing && isCompleted ? new PyFloat(records.durationMs[i] as number) : undefined,
      input_sizes: [op.shape.input],
      input_dtypes: [op.dtype],
      output_sizes: [op.shape.output],
      output_dtypes: [op.dtype],
      state: isCompleted ? "completed" : isStarted ? "started" : "scheduled",
      time_discovered_started_ns: isStarted ? absolute(records.startedNs[i] as number) : null,
      time_discovered_completed_ns: isCompleted ? absolute(records.completedNs[i] as number) : null,
      retired: isCompleted,
      timeout_ms: options.timeoutMs,
      is_p2p: isP2p(op),
    };
  };
  return visibleRecords(records, options).flatMap((i): PyRecord[] => {
    if (ids === null || !isP2p(records.ops[i] as Op)) return [entryOf(i, false)];
    const part = entryOf(i, true);
    if (options.onlyActive && records.state[i] === COMPLETED) return [part];
    // What closes a batch has its state and its numbers, but no tensors, and does not call itself P2P.
    const closing = {
      ...entryOf(i, false),
      record_id: (part["record_id"] as number) + 1,
      profiling_name: "nccl:coalesced",
      input_sizes: [],
      input_dtypes: [],
      output_sizes: [],
      output_dtypes: [],
      is_p2p: false,
    };
    return [part, closing];
  });
}

/** Each batch has an entry more: what closes it. */
function batchedIds({ ops }: RankRecords): number[] {
  let closings = 0;
  return ops.map((op, i) => i + (isP2p(op) ? closings++ : closings));
}

/** "nccl:all_reduce", "nccl:send 0->1", "nccl:recv 1<-0": ranks are those of the group. */
function profilingName(op: Op, groups: readonly SimGroup[], rank: number): string {
  if (!isP2p(op)) return COLLECTIVE_NAMES[op.kind];
  const self = groups[op.group]?.ranks.indexOf(rank);
  return op.kind === "send" ? `nccl:send ${self}->${op.peer}` : `nccl:recv ${self}<-${op.peer}`;
}

/** Frames of one dump, each once: the pickler writes a frame that recurs as a reference. */
class FrameTable {
  readonly #frames = new Map<string, PyShared>();
  readonly #stacks = new Map<string, PyShared[]>();

  stack(op: Op): PyValue {
    const key = `${op.kind} ${op.site}`;
    const stack = getOrInsert(this.#stacks, key, () =>
      callStack(op).map((frame) => this.#frame(frame)),
    );
    for (const frame of stack) frame.uses++;
    return stack;
  }

  #frame(frame: Frame): PyShared {
    const key = `${frame.func} ${frame.file} ${frame.line}`;
    const shared = getOrInsert(
      this.#frames,
      key,
      () => new PyShared({ name: frame.func, filename: frame.file, line: frame.line }),
    );
    return shared;
  }
}
