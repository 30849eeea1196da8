/** A ring as it lies in a file, field by field, for tests to look at. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  CONNECTION,
  CONNECTION_BYTES,
  HEADER,
  KIND,
  RECORD,
  WIRE,
  RECORD_BYTES,
} from "../../../src/ingest/probe-ring/layout.ts";

export interface Record {
  readonly ticket: number;
  readonly kind: number;
  readonly func: number;
  readonly dtype: number;
  readonly flags: number;
  readonly group: number;
  readonly channels: number;
  readonly channelsEnded: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: number;
  /** Of operators; 0 elsewhere. */
  readonly wire: number;
  readonly e: number;
  readonly issuedNs: bigint;
  readonly startedNs: bigint;
  readonly endedNs: bigint;
}

export class Ring {
  readonly file: string;
  readonly bytes: Buffer;
  constructor(file: string) {
    this.file = file;
    this.bytes = readFileSync(file);
  }
  u32(field: keyof typeof HEADER): number {
    return this.bytes.readUInt32LE(HEADER[field]);
  }
  u64(field: keyof typeof HEADER): bigint {
    return this.bytes.readBigUInt64LE(HEADER[field]);
  }
  text(at: number, length: number): string {
    const raw = this.bytes.subarray(at, at + length);
    const end = raw.indexOf(0);
    return raw.subarray(0, end === -1 ? length : end).toString("utf8");
  }
  get words(): string {
    const at = this.u32("wordsOffset");
    return this.bytes.subarray(at, at + Number(this.u64("wordsLength"))).toString("utf8");
  }
  get ended(): { how: number; code: number } {
    return { how: this.u32("endedHow"), code: this.u32("endedCode") };
  }
  /** Of a ring that nobody writes any more. */
  get records(): Record[] {
    const found: Record[] = [];
    const base = Number(this.u64("recordsOffset"));
    for (let slot = 0; slot < this.u32("recordCount"); slot++) {
      const at = base + slot * RECORD_BYTES;
      const stamp = Number(this.bytes.readBigUInt64LE(at + RECORD.stamp));
      if (stamp === 0 || stamp % 2 === 1) continue;
      const byte = (field: keyof typeof RECORD): number => this.bytes.readUInt8(at + RECORD[field]);
      const word = (field: keyof typeof RECORD): number =>
        this.bytes.readUInt32LE(at + RECORD[field]);
      const long = (field: keyof typeof RECORD): bigint =>
        this.bytes.readBigUInt64LE(at + RECORD[field]);
      const isOperator = [KIND.collective, KIND.p2p].some((kind) => kind === byte("kind"));
      found.push({
        ticket: stamp / 2 - 1,
        kind: byte("kind"),
        func: byte("func"),
        dtype: byte("dtype"),
        flags: byte("flags"),
        group: this.bytes.readUInt16LE(at + RECORD.group),
        channels: byte("channels"),
        channelsEnded: byte("channelsEnded"),
        a: Number(long("a")),
        b: word("b"),
        c: this.bytes.readInt32LE(at + RECORD.c),
        d: isOperator ? word("d") & 0xffff : word("d"),
        wire: isOperator ? this.bytes.readUInt16LE(at + WIRE) : 0,
        e: word("e"),
        issuedNs: long("issuedNs"),
        startedNs: long("startedNs"),
        endedNs: long("endedNs"),
      });
    }
    return found.toSorted((x, y) => x.ticket - y.ticket);
  }
  get comms() {
    return Array.from({ length: this.u32("commCount") }, (_, i) => {
      const at = this.u32("commsOffset") + i * COMMUNICATOR_BYTES;
      return {
        id: this.bytes.readBigUInt64LE(at + COMMUNICATOR.id),
        rank: this.bytes.readInt32LE(at + COMMUNICATOR.rank),
        size: this.bytes.readInt32LE(at + COMMUNICATOR.size),
        nodes: this.bytes.readInt32LE(at + COMMUNICATOR.nodes),
        flags: this.bytes.readUInt32LE(at + COMMUNICATOR.flags),
        collectives: Number(this.bytes.readBigUInt64LE(at + COMMUNICATOR.collectives)),
        p2ps: Number(this.bytes.readBigUInt64LE(at + COMMUNICATOR.p2ps)),
        name: this.text(at + COMMUNICATOR.name, COMMUNICATOR.nameBytes),
      };
    });
  }
  get connections() {
    return Array.from({ length: this.u32("connectionCount") }, (_, i) => {
      const at = this.u32("connectionsOffset") + i * CONNECTION_BYTES;
      const long = (offset: number): number => Number(this.bytes.readBigUInt64LE(at + offset));
      return {
        comm: this.bytes.readUInt16LE(at + CONNECTION.comm),
        channel: this.bytes.readUInt8(at + CONNECTION.channel),
        isSend: this.bytes.readUInt8(at + CONNECTION.isSend),
        peer: this.bytes.readInt32LE(at + CONNECTION.peer),
        begun: long(CONNECTION.begun),
        finished: long(CONNECTION.finished),
        ops: [CONNECTION.opsBegun, CONNECTION.opsFinished].map((o) =>
          this.bytes.readUInt32LE(at + o),
        ),
        bytes: long(CONNECTION.bytes),
        states: [...this.bytes.subarray(at + CONNECTION.states, at + CONNECTION.states + 16)],
      };
    });
  }
}

export const ringsIn = (folder: string): Ring[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".ring"))
    .toSorted()
    .map((name) => new Ring(join(folder, name)));
