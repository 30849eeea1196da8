/**
 * A ring file that grows as a probe's does (probe/RING.md): records are written in place, marked while they are, and
 * changed until their operator ends. The bytes are kept here and what changed is written at once, so that a tick costs a
 * few writes however many records it brought.
 */
import { closeSync, constants, openSync, readSync, renameSync, writeSync } from "node:fs";
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  HEADER,
  KIND,
  RECORD,
  RECORD_BYTES,
  TEXT_BYTES,
  WIRE,
  wireCode,
} from "../../ingest/probe-ring/layout.ts";
import { EmptyRing, type RingAbout } from "./empty-ring.ts";

const TWO_32 = 2 ** 32;
/** NCCL's number of it. */
const RING_ALGORITHM = 1;

export interface LiveRingOptions extends RingAbout {
  readonly path: string;
  readonly startTicks: number;
  readonly records: number;
  readonly monotonicNs: bigint;
  /** Of calls, by their place in the table. */
  readonly names?: readonly string[];
  readonly communicators: readonly {
    readonly id: bigint;
    readonly rank: number;
    readonly size: number;
    readonly name: string;
    /** To whose place in it this one sends over the network; null: to none alone. */
    readonly next: number | null;
  }[];
}

/** Times are monotonic nanoseconds, as numbers; 0 where unknown. */
export interface LiveRecord {
  readonly kind: number;
  readonly func: number;
  readonly dtype: number;
  readonly flags: number;
  readonly group: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly issuedNs: number;
  readonly startedNs: number;
  readonly endedNs: number;
  /** For how long its sends are on the wire; 0 where it has none. */
  readonly sentMs: number;
}

export class LiveRing {
  readonly path: string;
  readonly #fd: number;
  readonly #writer: EmptyRing;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #slots: number;
  readonly #recordsOffset: number;
  readonly #commsOffset: number;
  readonly #comms: number;
  readonly #madeNs: number;
  #head = 0;
  /** Tickets whose records are not in the file as they are here. */
  #dirtyFrom = Infinity;
  #dirtyTo = -1;
  #commsChanged = false;
  #beatNs = 0;
  #isClosed = false;

  constructor(options: LiveRingOptions) {
    const { path, communicators, records, startTicks, gpu = -1 } = options;
    this.path = path;
    this.#writer = new EmptyRing(options);
    this.#bytes = this.#writer.bytes;
    this.#view = new DataView(this.#bytes.buffer);
    this.#slots = records;
    this.#comms = communicators.length;
    this.#madeNs = Number(options.monotonicNs);
    this.#recordsOffset = Number(this.#view.getBigUint64(HEADER.recordsOffset, true));
    this.#commsOffset = this.#view.getUint32(HEADER.commsOffset, true);
    this.#put64(HEADER.processStartTicks, startTicks);
    this.#view.setInt32(HEADER.localRank, gpu, true);
    for (const { id, rank, size, name, next } of communicators) {
      const comm = this.#writer.comm(id, rank, size, name);
      if (next !== null)
        this.#writer.connection({
          comm,
          isSend: true,
          peer: next,
          begun: 0,
          finished: 0,
          bytes: 1,
        });
    }
    for (const name of options.names ?? []) this.#writer.name(name);
    this.#put64(HEADER.heartbeatNs, this.#madeNs);
    // Whole or not at all: whoever looks for rings meanwhile must not find half a header.
    const unready = `${path}.new`;
    const how = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
    this.#fd = openSync(unready, how, 0o600);
    this.#write(0, this.#bytes.length);
    renameSync(unready, path);
  }

  close(): void {
    if (!this.#isClosed) closeSync(this.#fd);
    this.#isClosed = true;
  }

  get head(): number {
    return this.#head;
  }

  /** Its ticket. Nothing is in the file before `flush`. */
  append(record: LiveRecord): number {
    const ticket = this.#head++;
    const at = this.#place(ticket);
    const view = this.#view;
    this.#bytes.fill(0, at, at + RECORD_BYTES);
    this.#put64(at + RECORD.stamp, (ticket + 1) * 2);
    this.#bytes[at + RECORD.kind] = record.kind;
    this.#bytes[at + RECORD.func] = record.func;
    this.#bytes[at + RECORD.dtype] = record.dtype;
    this.#bytes[at + RECORD.flags] = record.flags;
    view.setUint16(at + RECORD.group, record.group, true);
    this.#put64(at + RECORD.a, record.a);
    view.setUint32(at + RECORD.b, record.b, true);
    view.setInt32(at + RECORD.c, record.c, true);
    this.#put64(at + RECORD.issuedNs, record.issuedNs);
    this.#put64(at + RECORD.startedNs, record.startedNs);
    this.#put64(at + RECORD.endedNs, record.endedNs);
    if (record.kind === KIND.collective) this.#bytes[at + RECORD.d] = RING_ALGORITHM;
    view.setUint16(at + WIRE, wireCode(record.sentMs), true);
    this.#touch(ticket);
    return ticket;
  }

  started(ticket: number, ns: number): void {
    this.#change(ticket, RECORD.startedNs, ns);
  }

  ended(ticket: number, ns: number): void {
    this.#change(ticket, RECORD.endedNs, ns);
  }

  /** One more call in a communicator. */
  issued(comm: number, isCollective: boolean): void {
    const field = isCollective ? COMMUNICATOR.collectives : COMMUNICATOR.p2ps;
    const at = this.#commsOffset + comm * COMMUNICATOR_BYTES + field;
    this.#put64(at, this.#get64(at) + 1);
    this.#commsChanged = true;
  }

  /** How the process ended: its last words. */
  end(how: "exit" | "exception" | "signal", code: number, atNs: number, words: string): void {
    this.#writer.end(how, code, atNs - this.#madeNs, words);
    const offset = this.#view.getUint32(HEADER.wordsOffset, true);
    this.#write(offset, this.#view.getUint32(HEADER.wordsBytes, true));
    this.#write(HEADER.endedHow, HEADER.wordsLength + 8 - HEADER.endedHow);
  }

  /** Sign of life of the writer's own thread, and both clocks at that moment. */
  beat(monotonicNs: number, realtimeNs: bigint): void {
    this.#beatNs = monotonicNs;
    this.#put64(HEADER.heartbeatNs, monotonicNs);
    this.#view.setBigUint64(HEADER.anchorRealtimeNs, realtimeNs, true);
    this.#put64(HEADER.anchorMonotonicNs, monotonicNs);
    this.#write(HEADER.anchorRealtimeNs, 16);
    this.#write(HEADER.heartbeatNs, 8);
  }

  /** The tests that an agent asked for and that are not answered: written into the file, not into our copy. */
  get testsWanted(): { readonly number: number; readonly text: string } | null {
    const number = this.#read(HEADER.validationWanted, 4).readUInt32LE();
    if (number === this.#view.getUint32(HEADER.validationAnswered, true)) return null;
    const bytes = this.#read(HEADER.validation, TEXT_BYTES.validation);
    const end = bytes.indexOf(0);
    return { number, text: bytes.toString("utf8", 0, end < 0 ? bytes.length : end) };
  }

  testsDone(number: number): void {
    this.#view.setUint32(HEADER.validationAnswered, number, true);
    this.#write(HEADER.validationAnswered, 4);
  }

  /** Nobody here can profile: answered without a trace. */
  refuseProfile(): void {
    const number = this.#read(HEADER.profileWanted, 4).readUInt32LE();
    if (number === this.#view.getUint32(HEADER.profileAnswered, true)) return;
    this.#view.setUint32(HEADER.profileAnswered, number, true);
    this.#write(HEADER.profileAnswered, 4);
  }

  #read(at: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    readSync(this.#fd, bytes, 0, length, at);
    return bytes;
  }

  get beatNs(): number {
    return this.#beatNs;
  }

  /** Brings the file up to date. */
  flush(): void {
    if (this.#dirtyTo >= this.#dirtyFrom) {
      const from = Math.max(this.#dirtyFrom, this.#head - this.#slots);
      // First everything as being written, then as written: a reader that comes in between leaves it out.
      for (const isOpen of [true, false]) {
        for (let ticket = from; ticket <= this.#dirtyTo; ticket++)
          this.#view.setUint8(this.#place(ticket), (((ticket + 1) * 2) % 256) + (isOpen ? 1 : 0));
        this.#writeRecords(from, this.#dirtyTo);
      }
      this.#dirtyFrom = Infinity;
      this.#dirtyTo = -1;
      this.#put64(HEADER.head, this.#head);
      this.#write(HEADER.head, 8);
    }
    if (this.#commsChanged) {
      this.#commsChanged = false;
      this.#write(this.#commsOffset, this.#comms * COMMUNICATOR_BYTES);
    }
  }

  #writeRecords(from: number, to: number): void {
    for (let ticket = from; ticket <= to;) {
      const many = Math.min(to - ticket + 1, this.#slots - (ticket % this.#slots));
      this.#write(this.#place(ticket), many * RECORD_BYTES);
      ticket += many;
    }
  }

  #change(ticket: number, field: number, ns: number): void {
    // Overwritten meanwhile: nobody will ever know.
    if (ticket < this.#head - this.#slots) return;
    this.#put64(this.#place(ticket) + field, ns);
    this.#touch(ticket);
  }

  #touch(ticket: number): void {
    if (ticket < this.#dirtyFrom) this.#dirtyFrom = ticket;
    if (ticket > this.#dirtyTo) this.#dirtyTo = ticket;
  }

  #place(ticket: number): number {
    return this.#recordsOffset + (ticket % this.#slots) * RECORD_BYTES;
  }

  #write(at: number, length: number): void {
    for (let done = 0; done < length;)
      done += writeSync(this.#fd, this.#bytes, at + done, length - done, at + done);
  }

  #get64(at: number): number {
    return this.#view.getUint32(at, true) + this.#view.getUint32(at + 4, true) * TWO_32;
  }

  #put64(at: number, value: number): void {
    const whole = Math.round(value);
    this.#view.setUint32(at, whole % TWO_32, true);
    this.#view.setUint32(at + 4, Math.floor(whole / TWO_32), true);
  }
}
