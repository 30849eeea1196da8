/** Rings of a job that really ran, written again as its probes wrote them: a record appears when it was issued, its times when they came. */
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FLAG, HEADER, RECORD, RECORD_BYTES, WIRE } from "../../../src/ingest/probe-ring/layout.ts";
import type { PlayedRings } from "./ring-rehearsal.ts";

export interface RecordedRings extends PlayedRings {
  /** When the first ring was made, by both clocks. */
  readonly startMs: number;
  readonly startNs: bigint;
  /** When the last record was issued. */
  readonly endMs: number;
}

/** `folder` has the rings of one machine. */
export function recordedRings(folder: string): RecordedRings {
  const played = mkdtempSync(join(tmpdir(), "faultline-recorded-"));
  const names = readdirSync(folder).filter((name) => name.endsWith(".native.ring"));
  const rings = names.map((name) => new RecordedRing(join(folder, name), join(played, name)));
  const startNs = rings.map((ring) => ring.startedNs).reduce((a, b) => (a < b ? a : b));
  const [first] = rings as [RecordedRing];
  const startMs = Number((first.offsetNs + startNs) / 1_000_000n);
  const lastNs = Math.max(...rings.map((ring) => ring.lastNs));
  return {
    machines: [{ machine: "machine", folder: played }],
    hasProcesses: false,
    startMs,
    startNs,
    endMs: startMs + (lastNs - Number(startNs)) / 1e6,
    step(nowNs) {
      for (const ring of rings) ring.play(nowNs);
    },
    close() {
      for (const ring of rings) ring.close();
      rmSync(played, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
}

class RecordedRing {
  readonly startedNs: bigint;
  /** Realtime less monotonic. */
  readonly offsetNs: bigint;
  readonly lastNs: number;
  readonly #recorded: Buffer;
  readonly #fd: number;
  readonly #slots: number;
  readonly #offset: number;
  readonly #total: number;
  #head: number;
  /** Records that will still change. */
  #open: number[] = [];

  constructor(from: string, to: string) {
    this.#recorded = readFileSync(from);
    const bytes = this.#recorded;
    this.#slots = bytes.readUInt32LE(HEADER.recordCount);
    this.#offset = Number(bytes.readBigUInt64LE(HEADER.recordsOffset));
    this.#total = Number(bytes.readBigUInt64LE(HEADER.head));
    this.#head = Math.max(0, this.#total - this.#slots);
    this.startedNs = bytes.readBigUInt64LE(HEADER.startedMonotonicNs);
    this.offsetNs = bytes.readBigUInt64LE(HEADER.startedRealtimeNs) - this.startedNs;
    this.lastNs = this.#total > this.#head ? this.#time(this.#total - 1, RECORD.issuedNs) : 0;
    const empty = Buffer.from(bytes);
    empty.fill(0, this.#offset, this.#offset + this.#slots * RECORD_BYTES);
    empty.writeBigUInt64LE(BigInt(this.#head), HEADER.head);
    // What was overwritten before the copy was made was there once: as records of nothing.
    for (let ticket = 0; ticket < this.#head; ticket++)
      empty.writeBigUInt64LE(BigInt(ticket + 1) * 2n, this.#place(ticket) + RECORD.stamp);
    empty.writeBigUInt64LE(this.startedNs, HEADER.heartbeatNs);
    empty.writeUInt32LE(0, HEADER.endedHow);
    this.#fd = openSync(to, "wx", 0o600);
    writeSync(this.#fd, empty, 0, empty.length, 0);
  }

  play(nowNs: number): void {
    const due = this.#open;
    for (; this.#head < this.#total; this.#head++) {
      if (this.#time(this.#head, RECORD.issuedNs) > nowNs) break;
      due.push(this.#head);
    }
    const now = Buffer.alloc(RECORD_BYTES);
    this.#open = due.filter((ticket) => {
      const at = this.#place(ticket);
      this.#recorded.copy(now, 0, at, at + RECORD_BYTES);
      const isOver = hideFuture(now, nowNs);
      writeSync(this.#fd, now, 0, RECORD_BYTES, at);
      return !isOver;
    });
    const words = Buffer.alloc(8);
    words.writeBigUInt64LE(BigInt(this.#head));
    writeSync(this.#fd, words, 0, 8, HEADER.head);
    words.writeBigUInt64LE(BigInt(Math.round(nowNs)));
    writeSync(this.#fd, words, 0, 8, HEADER.heartbeatNs);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #place(ticket: number): number {
    return this.#offset + (ticket % this.#slots) * RECORD_BYTES;
  }

  #time(ticket: number, field: number): number {
    return Number(this.#recorded.readBigUInt64LE(this.#place(ticket) + field));
  }
}

/** Whether nothing is still to come. */
function hideFuture(record: Buffer, nowNs: number): boolean {
  const later = (field: number): boolean => Number(record.readBigUInt64LE(field)) > nowNs;
  const [isStartLater, isEndLater] = [later(RECORD.startedNs), later(RECORD.endedNs)];
  let flags = record[RECORD.flags]!;
  if (isEndLater) {
    record.writeBigUInt64LE(0n, RECORD.endedNs);
    record.writeUInt16LE(0, WIRE);
    record[RECORD.channelsEnded] = 0;
    flags &= ~FLAG.gpuEnd;
  }
  if (isStartLater) {
    record.writeBigUInt64LE(0n, RECORD.startedNs);
    flags &= ~FLAG.gpuStart;
  }
  record[RECORD.flags] = flags;
  return !isStartLater && !isEndLater;
}
