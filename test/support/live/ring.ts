/** A probe for tests: writes a ring as probe/RING.md says, from this process, for whichever process is asked for. */
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  COMPLETE,
  CONNECTION,
  CONNECTION_BYTES,
  HEADER,
  HEADER_BYTES,
  MAGIC,
  NAME_BYTES,
  NONE,
  PYTHON_WRITER,
  RECORD,
  RECORD_BYTES,
} from "../../../src/ingest/probe-ring/layout.ts";
import { thisMachine, type Machine } from "../../../src/live/agent/process-state.ts";

export interface TestRingOptions {
  /** The machine that it is written on (default: this one). */
  readonly on?: Pick<Machine, "monotonicNs" | "realtimeNs">;
  readonly host?: string;
  readonly folder: string;
  readonly job?: string;
  readonly address?: string;
  readonly rank?: number;
  readonly worldSize?: number;
  readonly pid?: number;
  readonly startTicks?: number;
  readonly writer?: "native" | "python";
  readonly records?: number;
  /** Realtime less now, nanoseconds: a ring of another machine. */
  readonly clockShiftNs?: bigint;
}

export interface TestRecord {
  readonly kind: number;
  readonly func?: number;
  readonly flags?: number;
  readonly group?: number;
  readonly a?: number;
  readonly b?: number;
  readonly c?: number;
  readonly d?: number;
  readonly issuedNs?: bigint;
  readonly startedNs?: bigint;
  readonly endedNs?: bigint;
}

const COMMS = 8;
const CONNECTIONS = 8;
const NAMES = 16;
const WORDS = 512;

/** Field 22 of /proc/<pid>/stat; 0 where there is no such process. */
export function startTicksOf(pid: number): number {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[19]);
  } catch {
    return 0;
  }
}

/** So much older than this machine, which may have booted a moment ago: tests write what is an hour old. */
const OLDER_NS = 7_200_000_000_000n;

export const nowNs = (): bigint => process.hrtime.bigint() + OLDER_NS;

/** This machine, had it booted two hours earlier. */
export const olderMachine: Machine = { ...thisMachine(), monotonicNs: nowNs };

/** So long ago by the clock of this machine itself, or when it booted, where that was later. */
export function agoNs(ms: number): bigint {
  const then = process.hrtime.bigint() - BigInt(ms) * 1_000_000n;
  return then > 0n ? then : 1n;
}

export class TestRing {
  readonly path: string;
  readonly bytes: Buffer;
  readonly recordCount: number;
  readonly #fd: number;
  readonly #recordsOffset: number;
  readonly #rank: number;
  readonly #nowNs: () => bigint;
  #head = 0;

  constructor(options: TestRingOptions) {
    const { on = thisMachine(), host = "testhost" } = options;
    this.#nowNs = () => on.monotonicNs();
    const { folder, job = "job", address = "", rank = 0, pid = process.pid } = options;
    const { writer = "native", records = 64, worldSize = 2, clockShiftNs = 0n } = options;
    const commsOffset = HEADER_BYTES;
    const connectionsOffset = commsOffset + COMMS * COMMUNICATOR_BYTES;
    const namesOffset = connectionsOffset + CONNECTIONS * CONNECTION_BYTES;
    const wordsOffset = namesOffset + NAMES * NAME_BYTES;
    this.#recordsOffset = wordsOffset + WORDS;
    this.recordCount = records;
    this.#rank = rank;
    const bytes = Buffer.alloc(this.#recordsOffset + records * RECORD_BYTES);
    this.bytes = bytes;
    bytes.write(MAGIC, 0, "latin1");
    const u32 = (at: number, ...values: number[]): void =>
      values.forEach((value, i) => bytes.writeInt32LE(value | 0, at + 4 * i));
    u32(HEADER.version, 1, HEADER_BYTES, RECORD_BYTES, records);
    bytes.writeBigUInt64LE(BigInt(this.#recordsOffset), HEADER.recordsOffset);
    u32(HEADER.commsOffset, commsOffset, COMMS, connectionsOffset, CONNECTIONS, namesOffset, NAMES);
    u32(HEADER.wordsOffset, wordsOffset, WORDS, writer === "python" ? PYTHON_WRITER : 1);
    u32(HEADER.pid, pid, rank, worldSize, rank, rank);
    const monotonic = this.#nowNs();
    const realtime = on.realtimeNs() + clockShiftNs;
    for (const at of [HEADER.startedRealtimeNs, HEADER.anchorRealtimeNs]) {
      bytes.writeBigUInt64LE(realtime, at);
      bytes.writeBigUInt64LE(monotonic, at + 8);
    }
    bytes.writeBigUInt64LE(
      BigInt(options.startTicks ?? startTicksOf(pid)),
      HEADER.processStartTicks,
    );
    bytes.write(host, HEADER.host);
    bytes.write(address === "" ? job : `${job} ${address}`, HEADER.job);
    bytes.write(writer === "python" ? "Python 3.12.3" : "NCCL 2.28.9", HEADER.library);
    bytes.write(writer === "python" ? "python" : "nccl-profiler-v5", HEADER.source);
    mkdirSync(folder, { recursive: true });
    this.path = join(folder, `${job}.r${rank < 0 ? "x" : rank}.${pid}.${writer}.ring`);
    this.#fd = openSync(this.path, "w+");
    writeSync(this.#fd, bytes, 0, bytes.length, 0);
    this.beat();
  }

  close(): void {
    closeSync(this.#fd);
  }

  append(record: TestRecord): number {
    const ticket = this.#head++;
    this.#write(ticket, record);
    this.#flush(HEADER.head, 8, () => this.bytes.writeBigUInt64LE(BigInt(this.#head), HEADER.head));
    return ticket;
  }

  /** Changes a record in place; one that was overwritten stays as it is. */
  update(ticket: number, record: TestRecord): void {
    if (this.#head - ticket <= this.recordCount) this.#write(ticket, record);
  }

  /** Takes a ticket and leaves its record half written, as a killed writer does. */
  tear(): number {
    const ticket = this.append({ kind: 1 });
    const at = this.#place(ticket);
    this.#flush(at, 8, () => (this.bytes[at]! |= 1));
    return ticket;
  }

  communicator(
    index: number,
    name: string,
    size: number,
    { id = BigInt(index + 1), rank = this.#rank }: { id?: bigint; rank?: number } = {},
  ): void {
    const at = HEADER_BYTES + index * COMMUNICATOR_BYTES;
    this.#flush(at, COMMUNICATOR_BYTES, () => {
      this.bytes.writeBigUInt64LE(id, at);
      this.bytes.writeInt32LE(rank, at + COMMUNICATOR.rank);
      this.bytes.writeInt32LE(size, at + COMMUNICATOR.size);
      this.bytes.writeUInt32LE(COMPLETE, at + COMMUNICATOR.flags);
      this.bytes.write(name, at + COMMUNICATOR.name);
    });
    this.word(HEADER.commCount, index + 1);
  }

  /** What was sent to a member over the network so far. */
  sends(index: number, group: number, peer: number, sent: number): void {
    const at = this.bytes.readUInt32LE(HEADER.connectionsOffset) + index * CONNECTION_BYTES;
    this.#flush(at, CONNECTION_BYTES, () => {
      this.bytes.writeUInt16LE(group, at + CONNECTION.comm);
      this.bytes[at + CONNECTION.isSend] = 1;
      this.bytes.writeInt32LE(peer, at + CONNECTION.peer);
      this.bytes.writeBigUInt64LE(BigInt(sent), at + CONNECTION.bytes);
    });
    this.word(HEADER.connectionCount, index + 1);
  }

  name(index: number, name: string): void {
    const at = this.bytes.readUInt32LE(HEADER.namesOffset) + index * NAME_BYTES;
    this.#flush(at, NAME_BYTES, () => this.bytes.write(name, at));
    this.word(HEADER.nameCount, index + 1);
  }

  beat(ns = this.#nowNs()): void {
    this.long(HEADER.heartbeatNs, ns);
  }

  word(at: number, value: number): void {
    this.#flush(at, 4, () => this.bytes.writeInt32LE(value | 0, at));
  }

  long(at: number, value: bigint): void {
    this.#flush(at, 8, () => this.bytes.writeBigUInt64LE(value, at));
  }

  #place(ticket: number): number {
    return this.#recordsOffset + (ticket % this.recordCount) * RECORD_BYTES;
  }

  #write(ticket: number, record: TestRecord): void {
    const { kind, func = 0, flags = 0, group = NONE, a = 0, b = 0, c = 0, d = 0 } = record;
    const { issuedNs = this.#nowNs(), startedNs = 0n, endedNs = 0n } = record;
    const at = this.#place(ticket);
    this.#flush(at, RECORD_BYTES, () => {
      const { bytes } = this;
      bytes.fill(0, at, at + RECORD_BYTES);
      bytes.writeBigUInt64LE(BigInt(ticket + 1) * 2n, at);
      bytes[at + RECORD.kind] = kind;
      bytes[at + RECORD.func] = func;
      bytes[at + RECORD.dtype] = 255;
      bytes[at + RECORD.flags] = flags;
      bytes.writeUInt16LE(group, at + RECORD.group);
      bytes.writeBigUInt64LE(BigInt(a), at + RECORD.a);
      bytes.writeUInt32LE(b, at + RECORD.b);
      bytes.writeInt32LE(c, at + RECORD.c);
      bytes.writeUInt32LE(d, at + RECORD.d);
      bytes.writeBigUInt64LE(issuedNs, at + RECORD.issuedNs);
      bytes.writeBigUInt64LE(startedNs, at + RECORD.startedNs);
      bytes.writeBigUInt64LE(endedNs, at + RECORD.endedNs);
    });
  }

  #flush(at: number, length: number, change: () => void): void {
    change();
    writeSync(this.#fd, this.bytes, at, length, at);
  }
}

/** For tests that only need it to be there. */
export function writeRing(options: TestRingOptions): TestRing {
  return new TestRing(options);
}
