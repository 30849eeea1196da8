/**
 * What the ranks of a run spend their iterations on, from their rings, summed up over some seconds (model/work-summary.ts):
 * loading, collections and waits for the GPU from Python's ring, traced matrix products from the native one.
 */
import {
  HEADER,
  KIND,
  NAME_BYTES,
  NAME_CAPACITY,
  NONE,
  RECORD,
} from "../../ingest/probe-ring/layout.ts";
import { callPurpose } from "../../model/probe.ts";
import {
  histogramOf,
  WORK_PARTS,
  type WorkPart,
  type WorkSummary,
} from "../../model/work-summary.ts";
import type { RingFollower } from "./follow-ring.ts";
import type { IndexedIteration } from "./iteration-index.ts";
import { text, whole } from "./ring-header.ts";

const INTERVAL_MS = 15_000;
/** Iterations of all ranks in an interval; the first are enough of more. */
const MOST_ROWS = 8192;
/** Records of a rank that are looked at for one iteration. */
const MOST_RECORDS = 65_536;

type HostPart = "dataloader" | "garbage-collection" | "synchronization";

export class WorkTally {
  readonly #ranks = new Map<number, HostWork>();
  #values = noValues();
  #waits = 0;
  #flops = 0;
  #rows = 0;
  #sinceMs = -Infinity;
  #last: WorkSummary | null = null;

  /** An iteration of a rank that is over, with the rings that hold its records. */
  add(
    rank: number,
    one: IndexedIteration,
    python: RingFollower | null,
    native: RingFollower | null,
  ): void {
    if (this.#rows >= MOST_ROWS) return;
    this.#rows++;
    this.#values.step.push((one.endNs - one.startNs) / 1e6);
    if (python) {
      const host = this.#ranks.get(rank) ?? new HostWork();
      this.#ranks.set(rank, host);
      const { ms, waits } = host.take(python, one);
      for (const [part, value] of ms) this.#values[part].push(value);
      this.#waits += waits;
    }
    const products = native && productsOf(native, one);
    if (!products) return;
    this.#values.products.push(products.ms);
    this.#flops += products.flops;
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
      flops: this.#flops / this.#rows,
    };
    this.#values = noValues();
    this.#waits = this.#flops = this.#rows = 0;
    this.#sinceMs = nowMs;
    return this.#last;
  }
}

function noValues(): Record<WorkPart, number[]> {
  return {
    step: [],
    dataloader: [],
    "garbage-collection": [],
    synchronization: [],
    products: [],
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
    let part = this.#purpose.get(name);
    if (part === undefined) {
      part = this.#read(name);
      this.#purpose.set(name, part);
    }
    return part;
  }

  #read(name: number): HostPart | null {
    const bytes = Buffer.alloc(NAME_BYTES);
    const offset = this.#follower!.header.readUInt32LE(HEADER.namesOffset) + name * NAME_BYTES;
    if (!this.#follower!.readAt(bytes, offset)) return null;
    const purpose = callPurpose(text(bytes, 0, NAME_BYTES));
    // What waits for other ranks is no work of this one.
    return purpose === "communication" ? null : purpose;
  }
}

/** null where none is traced. */
function productsOf(
  native: RingFollower,
  { first, behind }: IndexedIteration,
): { readonly ms: number; readonly flops: number } | null {
  const { kept } = native;
  let found = false;
  let ns = 0;
  let flops = 0;
  for (let ticket = first; ticket < Math.min(behind, first + MOST_RECORDS); ticket++) {
    const place = native.placeOf(ticket);
    if (place < 0 || kept[place + RECORD.kind] !== KIND.matrix) continue;
    const startedNs = whole(kept, place + RECORD.startedNs);
    const endedNs = whole(kept, place + RECORD.endedNs);
    if (startedNs === 0 || endedNs < startedNs) continue;
    found = true;
    ns += endedNs - startedNs;
    const m = kept.readUInt32LE(place + RECORD.a);
    const n = kept.readUInt32LE(place + RECORD.a + 4);
    const k = kept.readUInt32LE(place + RECORD.b);
    flops += 2 * m * n * k * Math.max(1, kept.readInt32LE(place + RECORD.c));
  }
  return found ? { ms: ns / 1e6, flops } : null;
}
