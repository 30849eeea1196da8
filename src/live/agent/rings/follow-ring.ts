/**
 * Follows one ring while it is written: each poll reads the header, the records that are new, and those that were still
 * open; so its cost follows the rate of records, not the size of the ring. What it has read it keeps in a ring of its own,
 * larger than the writer's and addressed in the same way, so that a dump of the last minutes is a ring again.
 */
import { closeSync } from "node:fs";
import {
  FLAG,
  HEADER,
  HEADER_BYTES,
  KIND,
  RECORD,
  RECORD_BYTES,
} from "../../../ingest/probe-ring/layout.ts";
import { whole } from "./ring-header.ts";
import { openRing, readFully, type RingFile } from "./ring-file.ts";

/** Records read at once. */
const BATCH = 8192;
/** Records that are followed until they end; beyond that the oldest are given up. */
const MOST_OPEN = 8192;
/** Records compared at once. */
const BLOCK = 64;
/** Open records so close to each other are read together: a read costs as much as copying this many. */
const NEAR = 64;
/** Ends of iterations that are kept until somebody takes them; beyond that the oldest go. */
const MOST_MARKS = 1024;

export interface FollowOptions {
  /** How far back records are kept. */
  readonly keepNs: number;
  /** A power of two; never fewer than the ring itself holds. */
  readonly mostRecords: number;
  /** Whether so many more bytes may be kept; absent: as `mostRecords` says. */
  mayGrow?(this: void, bytes: number): boolean;
}

/** An iteration that ended: its number, and its times by the monotonic clock. */
export interface IterationMark {
  readonly iteration: number;
  readonly issuedNs: number;
  readonly endedNs: number;
}

export class RingFollower {
  readonly ring: RingFile;
  readonly #fd: number;
  readonly #slots: number;
  readonly #options: FollowOptions;
  readonly #isForeign: boolean;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  readonly #batch: Buffer;
  /** The same bytes: reading a word of them is a tenth of the cost of Buffer's methods. */
  readonly #words: Uint32Array;
  readonly #again: Buffer;
  /** Record t lies in place t mod its number of records. */
  #history: Buffer;
  #next = 0;
  /** The first ticket that was still there when we came. */
  #first = 0;
  /** Tickets, ascending. */
  readonly #open = new Float64Array(MOST_OPEN);
  #openCount = 0;
  #hasPolled = false;
  #iterationNs = 0;
  #marks: IterationMark[] = [];

  /** Collectives and transfers that go on. */
  openOperators = 0;
  /** Iterations and Python calls that go on. */
  openCalls = 0;
  /** Monotonic time of the last sign of progress in communication or on the GPU; 0 before the first. */
  lastWorkNs = 0;
  /** The same of iterations and traced calls. */
  lastCallNs = 0;
  /** Number of the last iteration that was begun; -1 before the first. */
  lastIteration = -1;
  /** The longest time from one iteration to the next; 0 before the second. */
  longestIterationNs = 0;
  /** Records that were overwritten before they were read. */
  lost = 0;
  /** Records read so far. */
  records = 0;

  /**
   * Throws where the ring cannot be opened. `isForeign`: its times are by another clock than ours, so only what moves
   * under our eyes has a time.
   */
  constructor(ring: RingFile, options: FollowOptions, isForeign = false) {
    this.ring = ring;
    this.#isForeign = isForeign;
    this.#options = options;
    this.#slots = ring.header.recordCount;
    this.#fd = openRing(ring);
    const batch = Math.min(BATCH, this.#slots) * RECORD_BYTES;
    this.#batch = Buffer.from(new ArrayBuffer(batch));
    this.#words = new Uint32Array(this.#batch.buffer);
    this.#again = Buffer.from(new ArrayBuffer(batch));
    this.#history = Buffer.alloc(this.#slots * RECORD_BYTES);
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** The header as of the last poll. */
  get header(): Buffer {
    return this.#header;
  }

  /** The bytes that are kept: records lie in them at placeOf(). */
  get kept(): Buffer {
    return this.#history;
  }

  /** The oldest ticket that may still be kept. */
  get oldest(): number {
    return Math.max(this.#first, this.#next - this.#history.length / RECORD_BYTES);
  }

  /** The ticket behind the newest that was read. */
  get next(): number {
    return this.#next;
  }

  /** Where a record lies in `kept`; -1 where it was lost, is no longer kept, or was never seen whole. */
  placeOf(ticket: number): number {
    if (ticket < 0 || ticket >= this.#next) return -1;
    const place = placeOf(ticket, this.#history.length / RECORD_BYTES);
    return whole(this.#history, place) === (ticket + 1) * 2 ? place : -1;
  }

  /** Any bytes of the file as they are now; false where they cannot be read. */
  readAt(into: Buffer, offset: number): boolean {
    try {
      return readFully(this.#fd, into, offset);
    } catch {
      return false;
    }
  }

  /** Iterations that ended since the last call, in order; at most the last thousand. */
  takeMarks(): readonly IterationMark[] {
    const marks = this.#marks;
    this.#marks = [];
    return marks;
  }

  /** Reads what is new; false where the file can no longer be read. */
  poll(nowNs: number): boolean {
    if (!readFully(this.#fd, this.#header, 0)) return false;
    const head = whole(this.#header, HEADER.head);
    // Damaged since it was found: whoever looks for rings says so.
    if (!Number.isSafeInteger(head)) return false;
    const first = Math.max(this.#next, head - this.#slots);
    // What was overwritten before we came is nobody's loss.
    if (this.#hasPolled) this.lost += first - this.#next;
    else this.#first = first;
    this.#makeRoom(head, nowNs);
    this.#readOpen(head, nowNs);
    for (let ticket = first; ticket < head;) ticket += this.#readNew(ticket, head, nowNs);
    this.#next = Math.max(this.#next, head);
    this.#hasPolled = true;
    this.records = this.#next - this.#first - this.lost;
    this.#countOpen();
    return true;
  }

  /** The copy of the ring, with the older records that were kept here. */
  extend(copy: Buffer): Buffer {
    const capacity = this.#history.length / RECORD_BYTES;
    if (capacity === this.#slots) return copy;
    const from = Number(copy.readBigUInt64LE(HEADER.recordsOffset));
    const isLast = from + this.#slots * RECORD_BYTES === copy.length;
    const rest = isLast ? copy.subarray(0, from) : copy;
    const whereTo = Math.ceil(rest.length / 8) * 8;
    const bytes = Buffer.alloc(whereTo + this.#history.length);
    rest.copy(bytes);
    bytes.writeUInt32LE(capacity, HEADER.recordCount);
    bytes.writeBigUInt64LE(BigInt(whereTo), HEADER.recordsOffset);
    const records = bytes.subarray(whereTo);
    this.#history.copy(records);
    const oldest = whole(copy, HEADER.head) - this.#slots;
    for (let i = 0; i < this.#openCount; i++) {
      if (this.#open[i]! < oldest) giveUp(records, placeOf(this.#open[i]!, capacity));
    }
    for (let at = from; at < from + this.#slots * RECORD_BYTES; at += RECORD_BYTES) {
      const stamp = whole(copy, at);
      if (stamp === 0 || stamp % 2 === 1) continue;
      copy.copy(records, placeOf(stamp / 2 - 1, capacity), at, at + RECORD_BYTES);
    }
    return bytes;
  }

  /** Doubles what is kept while the oldest record that would be lost is younger than what is to be kept. */
  #makeRoom(head: number, nowNs: number): void {
    for (;;) {
      const capacity = this.#history.length / RECORD_BYTES;
      const oldest = head - capacity;
      if (oldest <= 0 || capacity >= this.#options.mostRecords) return;
      const place = placeOf(oldest, capacity);
      // Not read yet, or lost: it says nothing of its age, so room is made only as records come in.
      if (whole(this.#history, place) !== (oldest + 1) * 2) return;
      if (whole(this.#history, place + RECORD.issuedNs) < nowNs - this.#options.keepNs) return;
      if (this.#options.mayGrow?.(this.#history.length) === false) return;
      const larger = Buffer.alloc(this.#history.length * 2);
      // Whole stretches: copying a million records one by one would keep everybody waiting.
      for (let ticket = Math.max(0, this.#next - capacity); ticket < this.#next;) {
        const [from, to] = [ticket % capacity, ticket % (capacity * 2)];
        const many = Math.min(this.#next - ticket, capacity - from, capacity * 2 - to);
        const start = from * RECORD_BYTES;
        this.#history.copy(larger, to * RECORD_BYTES, start, start + many * RECORD_BYTES);
        ticket += many;
      }
      this.#history = larger;
    }
  }

  /** Reads records from this ticket on, up to the end of the file's ring; how many. */
  #readNew(ticket: number, head: number, nowNs: number): number {
    const slot = ticket % this.#slots;
    const most = this.#batch.length / RECORD_BYTES;
    const many = Math.min(head - ticket, this.#slots - slot, most);
    this.#readTwice(slot, many);
    for (let i = 0; i < many; i += BLOCK) {
      const some = Math.min(BLOCK, many - i);
      const [at, end] = [i * RECORD_BYTES, (i + some) * RECORD_BYTES];
      if (this.#batch.compare(this.#again, at, end, at, end) === 0)
        this.#keepBlock(ticket + i, at, some, nowNs);
      else
        for (let k = i; k < i + some; k++)
          this.#meet(ticket + k, this.#take(ticket + k, k * RECORD_BYTES, nowNs));
    }
    return many;
  }

  /** The same as `#take` for records that are new and were the same at both readings: as nearly all are. */
  #keepBlock(ticket: number, at: number, many: number, nowNs: number): void {
    const capacity = this.#history.length / RECORD_BYTES;
    const first = ticket % capacity;
    const before = Math.min(many, capacity - first);
    const middle = at + before * RECORD_BYTES;
    this.#batch.copy(this.#history, first * RECORD_BYTES, at, middle);
    this.#batch.copy(this.#history, 0, middle, at + many * RECORD_BYTES);
    for (let k = 0; k < many; k++) {
      const place = at + k * RECORD_BYTES;
      const stamp = this.#words[place / 4]! + this.#words[place / 4 + 1]! * 2 ** 32;
      const own = (ticket + k + 1) * 2;
      if (stamp === own) {
        this.#progress(place, nowNs);
        if (isOpen(this.#batch, place)) this.#follow(ticket + k);
      } else {
        // Not this record yet, or no longer: what was copied with the others is none of ours.
        const kept = placeOf(ticket + k, capacity);
        this.#history.fill(0, kept, kept + RECORD_BYTES);
        this.#meet(ticket + k, stamp > own + 1 ? "lost" : "open");
      }
    }
  }

  #meet(ticket: number, settled: "open" | "ended" | "lost"): void {
    if (settled === "open") this.#follow(ticket);
    else if (settled === "lost") this.lost++;
  }

  #readOpen(head: number, nowNs: number): void {
    let kept = 0;
    const { length } = this.#batch;
    for (let i = 0; i < this.#openCount;) {
      const first = this.#open[i]!;
      let j = i;
      const slot = first % this.#slots;
      const fits = (ticket: number): boolean =>
        ticket - this.#open[j]! <= NEAR &&
        ticket - first < length / RECORD_BYTES &&
        slot + (ticket - first) < this.#slots;
      while (j + 1 < this.#openCount && fits(this.#open[j + 1]!)) j++;
      if (this.#open[j]! >= head - this.#slots) this.#readTwice(slot, this.#open[j]! - first + 1);
      for (; i <= j; i++) {
        const ticket = this.#open[i]!;
        const settled =
          ticket < head - this.#slots
            ? "lost"
            : this.#take(ticket, (ticket - first) * RECORD_BYTES, nowNs);
        if (settled === "open") this.#open[kept++] = ticket;
        else if (settled === "lost") this.#giveUp(ticket);
      }
    }
    this.#openCount = kept;
  }

  #readTwice(slot: number, many: number): void {
    const at = this.ring.header.recordsOffset + slot * RECORD_BYTES;
    readFully(this.#fd, this.#batch.subarray(0, many * RECORD_BYTES), at);
    readFully(this.#fd, this.#again.subarray(0, many * RECORD_BYTES), at);
  }

  /** Keeps a record of the batch where it is whole (see copy-ring.ts on why it was read twice). */
  #take(ticket: number, at: number, nowNs: number): "open" | "ended" | "lost" {
    const stamp = whole(this.#batch, at);
    const own = (ticket + 1) * 2;
    if (stamp > own + 1) return "lost";
    // Its writer has the ticket and is not done, or changes it now: next time.
    if (stamp !== own) return "open";
    if (this.#batch.compare(this.#again, at, at + RECORD_BYTES, at, at + RECORD_BYTES) !== 0)
      return "open";
    const place = placeOf(ticket, this.#history.length / RECORD_BYTES);
    const wasKnown = whole(this.#history, place) === own;
    const isSame =
      wasKnown &&
      this.#history.compare(this.#batch, at, at + RECORD_BYTES, place, place + RECORD_BYTES) === 0;
    if (!isSame) {
      this.#batch.copy(this.#history, place, at, at + RECORD_BYTES);
      this.#progress(at, nowNs);
    }
    return isOpen(this.#batch, at) ? "open" : "ended";
  }

  #progress(at: number, nowNs: number): void {
    const kind = this.#batch[at + RECORD.kind]!;
    // A ring that is met in the middle tells by its records when it went on last; later our own clock does.
    const before = this.#isForeign ? 0 : Math.min(nowNs, this.#timeOf(at));
    const when = this.#hasPolled ? nowNs : before;
    if (kind === KIND.iteration || kind === KIND.pythonCall) {
      this.lastCallNs = Math.max(this.lastCallNs, when);
      if (kind === KIND.iteration) this.#iteration(at);
    } else if (kind !== KIND.collection && kind !== KIND.memory) {
      this.lastWorkNs = Math.max(this.lastWorkNs, when);
    }
  }

  #timeOf(at: number): number {
    const issued = whole(this.#batch, at + RECORD.issuedNs);
    return Math.max(issued, whole(this.#batch, at + RECORD.endedNs));
  }

  #iteration(at: number): void {
    this.lastIteration = Math.max(this.lastIteration, whole(this.#batch, at + RECORD.a));
    const ended = whole(this.#batch, at + RECORD.endedNs);
    const issued = whole(this.#batch, at + RECORD.issuedNs);
    const when = ended > 0 ? ended : issued;
    if (ended > 0) this.#mark(whole(this.#batch, at + RECORD.a), issued, ended);
    if (this.#iterationNs > 0)
      this.longestIterationNs = Math.max(this.longestIterationNs, when - this.#iterationNs);
    this.#iterationNs = when;
  }

  #mark(iteration: number, issuedNs: number, endedNs: number): void {
    this.#marks.push({ iteration, issuedNs, endedNs });
    // Halved, not shifted one by one: most who follow rings take none.
    if (this.#marks.length >= 2 * MOST_MARKS) this.#marks = this.#marks.slice(MOST_MARKS);
  }

  #follow(ticket: number): void {
    if (this.#openCount === MOST_OPEN) {
      this.#giveUp(this.#open[0]!);
      this.#open.copyWithin(0, 1);
      this.#openCount--;
    }
    this.#open[this.#openCount++] = ticket;
  }

  /** Its end will never be known: kept as it is, it would look like an operator that hangs. */
  #giveUp(ticket: number): void {
    const place = placeOf(ticket, this.#history.length / RECORD_BYTES);
    if (whole(this.#history, place) === (ticket + 1) * 2) giveUp(this.#history, place);
  }

  #countOpen(): void {
    this.openOperators = 0;
    this.openCalls = 0;
    for (let i = 0; i < this.#openCount; i++) {
      const place = placeOf(this.#open[i]!, this.#history.length / RECORD_BYTES);
      if (whole(this.#history, place) !== (this.#open[i]! + 1) * 2) continue;
      const kind = this.#history[place + RECORD.kind]!;
      if (kind === KIND.collective || kind === KIND.p2p) this.openOperators++;
      else if (kind === KIND.iteration || kind === KIND.pythonCall) this.openCalls++;
    }
  }
}

/** Samples are over when they are written; what is on the GPU and not timed never says its end. */
export function isOpen(bytes: Buffer, at: number): boolean {
  if ((bytes[at + RECORD.flags]! & FLAG.untimed) !== 0) return false;
  return bytes[at + RECORD.kind] !== KIND.memory && whole(bytes, at + RECORD.endedNs) === 0;
}

function giveUp(records: Buffer, place: number): void {
  if (isOpen(records, place)) records[place + RECORD.flags]! |= FLAG.untimed;
}

function placeOf(ticket: number, capacity: number): number {
  return (ticket % capacity) * RECORD_BYTES;
}
