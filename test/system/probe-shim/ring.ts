/** What is in a ring, record by record, out of the file alone (probe/RING.md). */
import { readFileSync } from "node:fs";
import { COMMUNICATOR, HEADER, NAME_BYTES, RECORD } from "../../../src/ingest/probe-ring/layout.ts";

export interface Record {
  readonly kind: number;
  readonly func: number;
  readonly dtype: number;
  readonly flags: number;
  readonly group: number;
  readonly a: bigint;
  readonly b: number;
  readonly c: number;
  readonly d: number;
  readonly e: number;
  readonly issuedNs: number;
  readonly startedNs: number;
  readonly endedNs: number;
}

export interface Communicator {
  readonly id: bigint;
  readonly rank: number;
  readonly size: number;
  readonly flags: number;
  readonly collectives: number;
  readonly p2ps: number;
}

export interface Ring {
  readonly pid: number;
  readonly gpu: number;
  readonly library: string;
  readonly source: string;
  readonly endedHow: number;
  readonly trappedNow: number;
  readonly records: readonly Record[];
  readonly communicators: readonly Communicator[];
  readonly names: readonly string[];
}

export function readRing(file: string): Ring {
  const bytes = readFileSync(file);
  const text = (at: number, length: number): string =>
    bytes.toString("utf8", at, at + length).split("\0", 1)[0]!;
  const u32 = (at: number): number => bytes.readUInt32LE(at);
  const u64 = (at: number): number => Number(bytes.readBigUInt64LE(at));

  const record = (ticket: number): Record => {
    const at = u64(HEADER.recordsOffset) + 64 * ticket;
    if (u64(at + RECORD.stamp) !== 2 * (ticket + 1))
      throw new Error(`record ${ticket} is not whole`);
    return {
      kind: bytes[at + RECORD.kind]!,
      func: bytes[at + RECORD.func]!,
      dtype: bytes[at + RECORD.dtype]!,
      flags: bytes[at + RECORD.flags]!,
      group: bytes.readUInt16LE(at + RECORD.group),
      a: bytes.readBigUInt64LE(at + RECORD.a),
      b: u32(at + RECORD.b),
      c: bytes.readInt32LE(at + RECORD.c),
      d: u32(at + RECORD.d),
      e: u32(at + RECORD.e),
      issuedNs: u64(at + RECORD.issuedNs),
      startedNs: u64(at + RECORD.startedNs),
      endedNs: u64(at + RECORD.endedNs),
    };
  };
  const communicator = (index: number): Communicator => {
    const at = u32(HEADER.commsOffset) + 128 * index;
    return {
      id: bytes.readBigUInt64LE(at + COMMUNICATOR.id),
      rank: bytes.readInt32LE(at + COMMUNICATOR.rank),
      size: bytes.readInt32LE(at + COMMUNICATOR.size),
      flags: u32(at + COMMUNICATOR.flags),
      collectives: u64(at + COMMUNICATOR.collectives),
      p2ps: u64(at + COMMUNICATOR.p2ps),
    };
  };
  return {
    pid: bytes.readInt32LE(HEADER.pid),
    gpu: bytes.readInt32LE(HEADER.gpu),
    library: text(HEADER.library, 64),
    source: text(HEADER.source, 32),
    endedHow: bytes.readInt32LE(HEADER.endedHow),
    trappedNow: u64(HEADER.trappedNow),
    records: Array.from({ length: u64(HEADER.head) }, (_, ticket) => record(ticket)),
    communicators: Array.from({ length: u32(HEADER.commCount) }, (_, index) => communicator(index)),
    names: Array.from({ length: u32(HEADER.nameCount) }, (_, index) =>
      text(u32(HEADER.namesOffset) + NAME_BYTES * index, NAME_BYTES),
    ),
  };
}
