/** Numbers and texts out of a ring's bytes; every access is inside the file, whatever its header claims. */
import { harmless } from "../../base/text.ts";
import {
  COMMUNICATOR_BYTES,
  CONNECTION_BYTES,
  HEADER,
  HEADER_BYTES,
  MAGIC,
  NAME_BYTES,
  RECORD_BYTES,
  RING_VERSION,
  TEXT_BYTES,
} from "./layout.ts";

/** The most that a probe allocates: 2^24 records and the tables (the default is 5 MB). What claims more is not believed. */
export const MAX_RING_BYTES = 1024 ** 3 + 1024 ** 2;
/** Files may be rounded up to a page; what goes on for longer than its header says was not left by a probe. */
export const PAGE_BYTES = 4096;

interface Table {
  readonly offset: number;
  /** Entries in use that lie inside the file. */
  readonly count: number;
}

export interface RingBytes {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Slots that the file holds; the header's number where it is whole. */
  readonly slots: Table;
  readonly recordCount: number;
  readonly communicators: Table;
  readonly connections: Table;
  readonly names: Table;
  /** Nanoseconds since 1970 that all times are relative to. */
  readonly epochNs: bigint;
  /** Time at an offset of the file, relative to the epoch; NaN where it is 0. */
  ns(at: number): number;
}

export function isRing(head: Uint8Array): boolean {
  if (head.length < MAGIC.length) return false;
  for (let i = 0; i < MAGIC.length; i++) if (head[i] !== MAGIC.charCodeAt(i)) return false;
  return true;
}

/** What speaks against reading it at all; null where nothing does. */
export function refusal(bytes: Uint8Array): string | null {
  if (bytes.length < HEADER.recordCount) return "the ring is cut off in its header";
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint32(HEADER.version, true);
  if (version !== RING_VERSION)
    return `a ring of version ${version}; this Faultline reads ${RING_VERSION}: use the version that came with the probe`;
  if (bytes.length < HEADER_BYTES) return "the ring is cut off in its header";
  const header = view.getUint32(HEADER.headerBytes, true);
  const record = view.getUint32(HEADER.recordBytes, true);
  if (header !== HEADER_BYTES || record !== RECORD_BYTES)
    return `the header claims ${header} bytes of header and ${record} of a record, where version ${version} has ${HEADER_BYTES} and ${RECORD_BYTES}: damaged`;
  const count = view.getUint32(HEADER.recordCount, true);
  if (count === 0 || (count & (count - 1)) !== 0)
    return `the header claims ${count} records, which is not a power of two: damaged`;
  const offset = u64(view, HEADER.recordsOffset);
  if (offset + count * RECORD_BYTES > MAX_RING_BYTES)
    return `the header claims ${count} records at byte ${offset}: more than 1 GiB, not read`;
  if (offset < HEADER_BYTES || offset % 8 !== 0)
    return `the header claims records at byte ${offset}, inside itself: damaged`;
  const head = view.getBigUint64(HEADER.head, true);
  if (isBeyondCounting(head)) return `the header claims a head of ${head} records: damaged`;
  return null;
}

/** More than a double counts exactly, and than any job issues. */
export function isBeyondCounting(head: bigint): boolean {
  return head > BigInt(Number.MAX_SAFE_INTEGER);
}

/** How many bytes there are to read behind such a beginning of a file: no further than its header promises. */
export function promisedBytes(head: Uint8Array): number {
  if (refusal(head) !== null) return HEADER_BYTES;
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const u32 = (at: number): number => view.getUint32(at, true);
  const records = u64(view, HEADER.recordsOffset) + u32(HEADER.recordCount) * RECORD_BYTES;
  const tables = TABLES.map(([at, size]) => u32(at) + u32(at + 4) * size);
  // A table that no probe makes is a lie, and promises nothing.
  return Math.max(records, ...tables.filter((end) => end <= MAX_RING_BYTES));
}

/** Where the header has the offset of each table, its capacity behind it; bytes of an entry. */
const TABLES = [
  [HEADER.commsOffset, COMMUNICATOR_BYTES],
  [HEADER.connectionsOffset, CONNECTION_BYTES],
  [HEADER.namesOffset, NAME_BYTES],
  [HEADER.wordsOffset, 1],
] as const;

/** For bytes that `refusal` has nothing against. */
export function ringBytes(bytes: Uint8Array, say: (what: string) => void): RingBytes {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const recordCount = view.getUint32(HEADER.recordCount, true);
  const recordsOffset = u64(view, HEADER.recordsOffset);
  const room = Math.floor(Math.max(0, bytes.length - recordsOffset) / RECORD_BYTES);
  const slots = Math.min(recordCount, room);
  if (slots < recordCount) {
    say(`the ring is cut off: ${slots} of its ${recordCount} records are present`);
  }
  const table = (what: string, at: number, used: number, size: number): Table => {
    const offset = view.getUint32(at, true);
    const capacity = view.getUint32(at + 4, true);
    const claimed = view.getUint32(used, true);
    const fits = Math.max(0, Math.floor((bytes.length - offset) / size));
    const isInside = offset >= HEADER_BYTES && offset % 8 === 0;
    const count = isInside ? Math.min(claimed, capacity, fits) : 0;
    if (count < claimed) say(`${count} of ${claimed} ${what} that the header claims are present`);
    return { offset, count };
  };
  const clock = clockOf(view);
  return {
    bytes,
    view,
    recordCount,
    slots: { offset: recordsOffset, count: slots },
    communicators: table("communicators", HEADER.commsOffset, HEADER.commCount, 128),
    connections: table("connections", HEADER.connectionsOffset, HEADER.connectionCount, 64),
    names: table("names", HEADER.namesOffset, HEADER.nameCount, 64),
    ...clock,
  };
}

/**
 * The writer's clock is monotonic; a pair of both clocks ties it to the time of day. The newest pair counts, because
 * clocks are stepped and drift. Differences are taken in two halves: a machine that is up for 104 days has more
 * nanoseconds than a double holds exactly.
 */
function clockOf(view: DataView): Pick<RingBytes, "epochNs" | "ns"> {
  const startedReal = view.getBigUint64(HEADER.startedRealtimeNs, true);
  const startedMono = view.getBigUint64(HEADER.startedMonotonicNs, true);
  const anchorReal = view.getBigUint64(HEADER.anchorRealtimeNs, true);
  const anchorMono = view.getBigUint64(HEADER.anchorMonotonicNs, true);
  const isUsed = anchorReal > 0n && anchorMono >= startedMono;
  const epochNs = isUsed ? anchorReal - (anchorMono - startedMono) : startedReal;
  const low = view.getUint32(HEADER.startedMonotonicNs, true);
  const high = view.getUint32(HEADER.startedMonotonicNs + 4, true);
  return {
    epochNs: epochNs > 0n ? epochNs : 0n,
    ns(at) {
      const lowHalf = view.getUint32(at, true);
      const highHalf = view.getUint32(at + 4, true);
      if (lowHalf === 0 && highHalf === 0) return NaN;
      return (highHalf - high) * 4_294_967_296 + (lowHalf - low);
    },
  };
}

/** Exact up to 2^53 and never more: a loop that counts to a larger number would stand still. */
export function u64(view: DataView, at: number): number {
  const value = view.getUint32(at + 4, true) * 4_294_967_296 + view.getUint32(at, true);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

const UTF8 = new TextDecoder();

/** Up to the first zero; whatever a file says, it is no order to a terminal. */
export function textAt(bytes: Uint8Array, at: number, most: number): string {
  return harmless(rawText(bytes, at, most));
}

/** The same for a text of several lines. */
export function linesAt(bytes: Uint8Array, at: number, most: number): string {
  return rawText(bytes, at, most).split(/\r?\n/).map(harmless).join("\n");
}

function rawText(bytes: Uint8Array, at: number, most: number): string {
  const field = bytes.subarray(at, at + most);
  const end = field.indexOf(0);
  return UTF8.decode(end < 0 ? field : field.subarray(0, end));
}

export function headerText(bytes: Uint8Array, field: keyof typeof TEXT_BYTES): string {
  return textAt(bytes, HEADER[field], TEXT_BYTES[field]);
}
