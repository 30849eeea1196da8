/**
 * What the ranks of a run spend their iterations on, from their rings, summed up over some seconds (model/work-summary.ts):
 * loading, collections and waits for the GPU from Python's ring; time outside communication, issue latencies and traced matrix
 * products from the native one.
 */
import { getOrInsert } from "../../../base/group-by.ts";
import {
  COLLECTIVES,
  DTYPES,
  HEADER,
  KIND,
  NAME_BYTES,
  NAME_CAPACITY,
  NONE,
  RECORD,
} from "../../../ingest/probe-ring/layout.ts";
import { callPurpose } from "../../../model/probe.ts";
import {
  histogramOf,
  MOST_PROGRAMS,
  MOST_SHAPES,
  WORK_PARTS,
  type ShapeTimes,
  type WorkPart,
  type WorkSummary,
} from "../../../model/work-summary.ts";
import type { RingFollower } from "../rings/follow-ring.ts";
import type { IndexedIteration } from "./iteration-index.ts";
import {
  COLLECTIVE,
  durationMs,
  type IterationSums,
  type KeptOperators,
} from "../rings/kept-operators.ts";
import { textAt } from "../../../ingest/probe-ring/ring-bytes.ts";
import { whole } from "../rings/ring-header.ts";

const INTERVAL_MS = 15_000;
/** Iterations of all ranks in an interval; the first are enough of more. */
const MOST_ROWS = 8192;
/** Records of a rank that are looked at for one iteration. */
const MOST_RECORDS = 65_536;

/** Shapes and programs that are told apart in an interval, and times of one shape. */
const MOST_KINDS = 256;
const MOST_TIMES = 2048;
/** More than any tensor has, and few enough for a number beside function and type. */
const MOST_ELEMENTS = 2 ** 44;

type HostPart = "dataloader" | "garbage-collection" | "synchronization";

/** An iteration of a rank that is over, with the rings that hold its records; null for what the rank does not have. */
export interface RankIteration {
  readonly rank: number;
  readonly one: IndexedIteration;
  readonly python: RingFollower | null;
  readonly native: RingFollower | null;
  readonly operators: KeptOperators | null;
  readonly sums: IterationSums | null;
}

export class WorkTally {
  readonly #ranks = new Map<number, HostWork>();
  #values = noValues();
  #shapes = new Map<string, number[]>();
  /** By function, type and elements in one number. */
  #transfers = new Map<number, number[]>();
  #programs = new Map<string, number>();
  #waits = 0;
  #rows = 0;
  #sinceMs = -Infinity;
  #last: WorkSummary | null = null;

  add({ rank, one, python, native, operators, sums }: RankIteration): void {
    if (this.#rows >= MOST_ROWS) return;
    this.#rows++;
    const stepMs = (one.endNs - one.startNs) / 1e6;
    this.#values.step.push(stepMs);
    if (python) {
      const host = this.#ranks.get(rank) ?? new HostWork();
      this.#ranks.set(rank, host);
      const { ms, waits } = host.take(python, one);
      for (const [part, value] of ms) this.#values[part].push(value);
      this.#waits += waits;
    }
    if (native) this.#addProducts(native, one);
    if (!operators?.isWhole || !sums || operators.count === 0) return;
    const ownMs = stepMs - sums.collectiveMs - sums.sendMs - sums.recvMs;
    if (!Number.isNaN(ownMs)) this.#values.own.push(Math.max(0, ownMs));
    const latencyMs = issueLatency(operators);
    if (latencyMs !== null) this.#values["issue-latency"].push(latencyMs);
    this.#addTransfers(operators);
    const program = programOf(operators);
    if (this.#programs.size < MOST_KINDS || this.#programs.has(program))
      this.#programs.set(program, (this.#programs.get(program) ?? 0) + 1);
  }

  /** The last interval that is over; null before the first. `nowMs` by any clock that only goes forward. */
  summary(nowMs: number): WorkSummary | null {
    if (this.#sinceMs === -Infinity) this.#sinceMs = nowMs;
    if (nowMs - this.#sinceMs < INTERVAL_MS || this.#rows === 0) return this.#last;
    const values = this.#values;
    const parts = WORK_PARTS.filter((part) => values[part].length > 0);
    this.#last = {
      interval: Math.floor(nowMs),
      parts: Object.fromEntries(parts.map((part) => [part, histogramOf(values[part])])),
      synchronizations: this.#waits / this.#rows,
      shapes: longest(this.#shapes, (shape) => shape),
      transfers: longest(this.#transfers, transferName),
      programs: this.#steadyPrograms(),
    };
    this.#values = noValues();
    this.#shapes = new Map();
    this.#transfers = new Map();
    this.#programs = new Map();
    this.#waits = this.#rows = 0;
    this.#sinceMs = nowMs;
    return this.#last;
  }

  #addProducts(native: RingFollower, { first, behind }: IndexedIteration): void {
    const { kept } = native;
    for (let ticket = first; ticket < Math.min(behind, first + MOST_RECORDS); ticket++) {
      const place = native.placeOf(ticket);
      if (place < 0 || kept[place + RECORD.kind] !== KIND.matrix) continue;
      const startedNs = whole(kept, place + RECORD.startedNs);
      const endedNs = whole(kept, place + RECORD.endedNs);
      if (startedNs === 0 || endedNs < startedNs) continue;
      const m = kept.readUInt32LE(place + RECORD.a);
      const n = kept.readUInt32LE(place + RECORD.a + 4);
      const k = kept.readUInt32LE(place + RECORD.b);
      const shape = `${m}x${n}x${k}x${Math.max(1, kept.readInt32LE(place + RECORD.c))}`;
      addTime(this.#shapes, shape, (endedNs - startedNs) / 1e6);
    }
  }

  #addTransfers({ bytes, at, op, count }: KeptOperators): void {
    for (let i = 0; i < count; i++) {
      const place = at[i]!;
      if (op[i] !== COLLECTIVE) continue;
      const ms = durationMs(bytes, place);
      const elements = whole(bytes, place + RECORD.a);
      if (Number.isNaN(ms) || elements > MOST_ELEMENTS) continue;
      const kind = (bytes[place + RECORD.func]! & 15) * 16 + (bytes[place + RECORD.dtype]! & 15);
      addTime(this.#transfers, elements * 256 + kind, ms);
    }
  }

  /** Those that came again and again; a job whose sizes change all the time has none. */
  #steadyPrograms(): string[] {
    return [...this.#programs]
      .filter(([, count]) => count > 1)
      .sort((a, b) => b[1] - a[1])
      .slice(0, MOST_PROGRAMS)
      .map(([program]) => program)
      .sort();
  }
}

function addTime<K>(times: Map<K, number[]>, kind: K, ms: number): void {
  const known = times.get(kind);
  if (known && known.length < MOST_TIMES) known.push(ms);
  else if (!known && times.size < MOST_KINDS) times.set(kind, [ms]);
}

function longest<K>(
  times: ReadonlyMap<K, readonly number[]>,
  name: (kind: K) => string,
): ShapeTimes[] {
  const sum = (ms: readonly number[]): number => ms.reduce((all, one) => all + one, 0);
  return [...times]
    .sort((a, b) => sum(b[1]) - sum(a[1]))
    .slice(0, MOST_SHAPES)
    .map(([kind, ms]) => ({ shape: name(kind), ms: histogramOf(ms) }));
}

function transferName(kind: number): string {
  const operator = COLLECTIVES[(kind % 256) >> 4] ?? "collective";
  return `${operator}-${Math.floor(kind / 256)}-${DTYPES[kind % 16] ?? "bytes"}`;
}

/** The median of its collectives; null where the GPU's starts are not known. */
function issueLatency({ bytes, at, op, count }: KeptOperators): number | null {
  const ns: number[] = [];
  for (let i = 0; i < count; i++) {
    if (op[i] !== COLLECTIVE) continue;
    const startedNs = whole(bytes, at[i]! + RECORD.startedNs);
    const issuedNs = whole(bytes, at[i]! + RECORD.issuedNs);
    if (startedNs > 0) ns.push(Math.max(0, startedNs - issuedNs));
  }
  if (ns.length === 0) return null;
  ns.sort((a, b) => a - b);
  return ns[ns.length >> 1]! / 1e6;
}

/** FNV-1a over what is communicated, in its order. */
function programOf({ bytes, at, op, count }: KeptOperators): string {
  let hash = 0x811c9dc5;
  const add = (word: number): void => void (hash = Math.imul(hash ^ word, 0x01000193) >>> 0);
  for (let i = 0; i < count; i++) {
    const place = at[i]!;
    add(op[i]!);
    add(bytes[place + RECORD.func]!);
    add(bytes.readUInt32LE(place + RECORD.a));
    add(bytes.readUInt32LE(place + RECORD.a + 4));
  }
  return `${count}-${hash.toString(36)}`;
}

function noValues(): Record<WorkPart, number[]> {
  return {
    step: [],
    dataloader: [],
    "garbage-collection": [],
    synchronization: [],
    own: [],
    "issue-latency": [],
  };
}

/** What Python did on one rank; its records are read once, in their order. */
class HostWork {
  /** By index in the ring's table. */
  readonly #purpose = new Map<number, HostPart | null>();
  /** Parts that this rank has shown: one that never loads has no loader. */
  readonly #seen = new Set<HostPart>();
  #follower: RingFollower | null = null;
  #cursor = 0;

  take(
    follower: RingFollower,
    { startNs, endNs }: IndexedIteration,
  ): { readonly ms: ReadonlyMap<HostPart, number>; readonly waits: number } {
    if (follower !== this.#follower) {
      this.#follower = follower;
      this.#purpose.clear();
      this.#cursor = follower.oldest;
    }
    const { kept, next } = follower;
    const ms = new Map<HostPart, number>();
    /** By part: when the outermost call ends; those inside it count with it. */
    const until = new Map<HostPart, number>();
    let waits = 0;
    this.#cursor = Math.max(this.#cursor, follower.oldest, next - MOST_RECORDS);
    for (; this.#cursor < next; this.#cursor++) {
      const place = follower.placeOf(this.#cursor);
      if (place < 0) continue;
      const issuedNs = whole(kept, place + RECORD.issuedNs);
      if (issuedNs >= endNs) break;
      const part = this.#partOf(kept, place);
      const endedNs = whole(kept, place + RECORD.endedNs);
      if (part === null || issuedNs < startNs || endedNs === 0) continue;
      this.#seen.add(part);
      if (issuedNs < (until.get(part) ?? 0)) continue;
      until.set(part, endedNs);
      ms.set(part, (ms.get(part) ?? 0) + Math.max(0, endedNs - issuedNs) / 1e6);
      if (part === "synchronization") waits++;
    }
    for (const part of this.#seen) if (!ms.has(part)) ms.set(part, 0);
    return { ms, waits };
  }

  #partOf(kept: Buffer, place: number): HostPart | null {
    const kind = kept[place + RECORD.kind];
    if (kind === KIND.collection) return "garbage-collection";
    if (kind !== KIND.pythonCall) return null;
    const name = kept.readUInt16LE(place + RECORD.group);
    if (name === NONE || name >= NAME_CAPACITY) return null;
    const part = getOrInsert(this.#purpose, name, () => this.#read(name));
    return part;
  }

  #read(name: number): HostPart | null {
    const bytes = Buffer.alloc(NAME_BYTES);
    const offset = this.#follower!.header.readUInt32LE(HEADER.namesOffset) + name * NAME_BYTES;
    if (!this.#follower!.readAt(bytes, offset)) return null;
    const purpose = callPurpose(textAt(bytes, 0, NAME_BYTES));
    // What waits for other ranks is no work of this one.
    return purpose === "communication" ? null : purpose;
  }
}
