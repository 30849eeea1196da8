/** The header of a ring as the agent needs it (probe/RING.md): who writes it, how far it is, what is asked of it. */

import { thousands } from "../../../base/text.ts";
import {
  COMMUNICATOR_BYTES,
  CONNECTION_BYTES,
  HEADER,
  HEADER_BYTES,
  MAGIC,
  NAME_BYTES,
  PYTHON_WRITER,
  RECORD_BYTES,
  RING_VERSION,
} from "../../../ingest/probe-ring/layout.ts";
import {
  headerText,
  isBeyondCounting,
  MAX_RING_BYTES,
  PAGE_BYTES,
} from "../../../ingest/probe-ring/ring-bytes.ts";

const TABLES = [
  ["communicators", HEADER.commsOffset, COMMUNICATOR_BYTES],
  ["connections", HEADER.connectionsOffset, CONNECTION_BYTES],
  ["names", HEADER.namesOffset, NAME_BYTES],
  ["last words", HEADER.wordsOffset, 1],
] as const;
/** As many as the probes make (FAULTLINE_RECORDS); what claims more is damaged. */
const MOST_RECORDS = 1 << 24;

export interface RingHeader {
  readonly writer: "native" | "python";
  readonly pid: number;
  /** -1 where unknown, as the next three. */
  readonly rank: number;
  readonly worldSize: number;
  readonly localRank: number;
  readonly gpu: number;
  readonly host: string;
  readonly job: string;
  /** MASTER_ADDR:MASTER_PORT; "" where the job has none. */
  readonly address: string;
  readonly library: string;
  readonly source: string;
  readonly recordCount: number;
  readonly recordsOffset: number;
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  /** Realtime less monotonic, nanoseconds, as of the last refresh: tells this boot of this machine from others. */
  readonly clockOffsetNs: bigint;
  /** The same when the ring was made: alike for all processes of one start. */
  readonly startOffsetNs: bigint;
  /** Start of the process, ticks since boot. */
  readonly startTicks: number;
}

/** What changes while it runs. */
export interface RingProgress {
  /** Tickets given so far. */
  readonly head: number;
  readonly dropped: number;
  /** Monotonic nanoseconds of the last sign of life; 0 where there was none. */
  readonly heartbeatNs: bigint;
  readonly endedHow: number;
  readonly endedCode: number;
  readonly endedNs: bigint;
  readonly trapUntilNs: bigint;
  readonly trappedNow: number;
  readonly trappedCalls: number;
  /** What the process does other than training (faultline_probe.phase); null while it trains. */
  readonly phase: string | null;
}

/** What is wrong with a header that was read from a file of so many bytes; null for a ring that can be read. */
export function headerDefect(bytes: Buffer, fileBytes: number): string | null {
  if (bytes.length < HEADER_BYTES) return "is shorter than a ring's header";
  if (bytes.toString("latin1", 0, 8) !== MAGIC) return "is not a ring";
  const version = bytes.readUInt32LE(HEADER.version);
  if (version !== RING_VERSION)
    return `is a ring of version ${version}, and this faultline reads ${RING_VERSION}`;
  const records = bytes.readUInt32LE(HEADER.recordCount);
  if (
    bytes.readUInt32LE(HEADER.headerBytes) !== HEADER_BYTES ||
    bytes.readUInt32LE(HEADER.recordBytes) !== RECORD_BYTES ||
    records === 0 ||
    records > MOST_RECORDS ||
    (records & (records - 1)) !== 0
  )
    return "has a damaged header";
  const head = bytes.readBigUInt64LE(HEADER.head);
  if (isBeyondCounting(head)) return `has a damaged header: a head of ${head} records`;
  const regions: (readonly [string, number, number])[] = [
    ["records", Number(bytes.readBigUInt64LE(HEADER.recordsOffset)), records * RECORD_BYTES],
    ...TABLES.map(([name, at, each]): [string, number, number] => [
      name,
      bytes.readUInt32LE(at),
      bytes.readUInt32LE(at + 4) * each,
    ]),
  ];
  let last = HEADER_BYTES;
  for (const [name, offset, size] of regions) {
    if (size === 0) continue;
    last = Math.max(last, offset + size);
    if (offset < HEADER_BYTES || offset % 8 !== 0) return "has a damaged header";
    if (offset + size > fileBytes) return `is cut off: its ${name} end behind the file`;
  }
  if (last > MAX_RING_BYTES) return "is larger than 1 GiB: no probe makes such a ring";
  if (fileBytes > last + PAGE_BYTES)
    return `is damaged: it continues beyond the ${thousands(last)} bytes in its header`;
  return null;
}

/** Bytes of everything but the records and the header: offset and length of each table. */
export function tablesOf(bytes: Buffer): { offset: number; length: number }[] {
  return TABLES.map(([, at, each]) => ({
    offset: bytes.readUInt32LE(at),
    length: bytes.readUInt32LE(at + 4) * each,
  })).filter(({ length }) => length > 0);
}

export function readHeader(bytes: Buffer): RingHeader {
  const [job = "", address = ""] = headerText(bytes, "job").split(" ");
  return {
    writer: bytes.readUInt32LE(HEADER.writer) === PYTHON_WRITER ? "python" : "native",
    pid: bytes.readInt32LE(HEADER.pid),
    rank: bytes.readInt32LE(HEADER.rank),
    worldSize: bytes.readInt32LE(HEADER.worldSize),
    localRank: bytes.readInt32LE(HEADER.localRank),
    gpu: bytes.readInt32LE(HEADER.gpu),
    host: headerText(bytes, "host"),
    job,
    address,
    library: headerText(bytes, "library"),
    source: headerText(bytes, "source"),
    recordCount: bytes.readUInt32LE(HEADER.recordCount),
    recordsOffset: Number(bytes.readBigUInt64LE(HEADER.recordsOffset)),
    startedMs: Number(bytes.readBigUInt64LE(HEADER.startedRealtimeNs) / 1_000_000n),
    clockOffsetNs: clockOffset(bytes),
    startOffsetNs: offsetAt(bytes, HEADER.startedRealtimeNs),
    startTicks: Number(bytes.readBigUInt64LE(HEADER.processStartTicks)),
  };
}

export function readProgress(bytes: Buffer): RingProgress {
  return {
    head: whole(bytes, HEADER.head),
    dropped: whole(bytes, HEADER.dropped),
    heartbeatNs: bytes.readBigUInt64LE(HEADER.heartbeatNs),
    endedHow: bytes.readInt32LE(HEADER.endedHow),
    endedCode: bytes.readInt32LE(HEADER.endedCode),
    endedNs: bytes.readBigUInt64LE(HEADER.endedNs),
    trapUntilNs: bytes.readBigUInt64LE(HEADER.trapUntilNs),
    trappedNow: whole(bytes, HEADER.trappedNow),
    trappedCalls: whole(bytes, HEADER.trappedCalls),
    phase: whole(bytes, HEADER.phaseSinceNs) > 0 ? headerText(bytes, "phase") : null,
  };
}

/** The refreshed pair where there is one (a clock may have been stepped since the ring was made). */
export function clockOffset(bytes: Buffer): bigint {
  const at =
    bytes.readBigUInt64LE(HEADER.anchorMonotonicNs) === 0n
      ? HEADER.startedRealtimeNs
      : HEADER.anchorRealtimeNs;
  return offsetAt(bytes, at);
}

function offsetAt(bytes: Buffer, at: number): bigint {
  return bytes.readBigUInt64LE(at) - bytes.readBigUInt64LE(at + 8);
}

/**
 * A u64 as a double: exact up to 2^53, more than any counter of a sound ring reaches; what counts in steps of one must not
 * count up to it unchecked. No bigint on the way to the heap.
 */
export function whole(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}
