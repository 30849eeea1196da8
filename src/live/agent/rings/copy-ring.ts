/**
 * Copies a ring while it is written, so that every record of the copy is whole.
 *
 * A record carries a stamp that is odd while it is changed, but a change in place ends with the stamp that it began with:
 * equal stamps before and after do not prove that a copy is whole. So the records are read twice, and a record counts
 * where both readings are the same, byte by byte: a half-changed one differs from what is there when the change is over.
 * What differed is read until two readings agree; what never holds still gets an odd stamp, and readers skip it.
 *
 * Order matters too. The header is read after the records, so no record is newer than the head says; the tables after the
 * header, so all that is counted is there.
 */
import { closeSync } from "node:fs";
import {
  HEADER,
  HEADER_BYTES,
  RECORD_BYTES,
  TEXT_BYTES,
} from "../../../ingest/probe-ring/layout.ts";
import { clockOffset, tablesOf } from "./ring-header.ts";
import { isForeign, lookAt, moment, type Machine } from "../process-state.ts";
import { openRing, readFully, type RingFile } from "./ring-file.ts";

/** Compared at once; what is equal in a page needs no look at its records. */
const PAGE = 4096;
const CHUNK = 1 << 20;
const TRIES = 16;

export interface RingCopy {
  readonly bytes: Buffer;
  /** Records that changed under every reading. */
  readonly unsettled: number;
  readonly state: string;
}

/** Throws where the file cannot be read, or was cut meanwhile. */
export function copyRing(ring: RingFile, machine: Machine): RingCopy {
  const fd = openRing(ring);
  try {
    const bytes = Buffer.allocUnsafe(ring.sizeBytes);
    const read = (into: Buffer, at: number): void => {
      if (!readFully(fd, into, at)) throw new Error("was cut off while it was read");
    };
    read(bytes, 0);
    const from = ring.header.recordsOffset;
    const end = from + ring.header.recordCount * RECORD_BYTES;
    const again = Buffer.allocUnsafe(Math.min(CHUNK, end - from));
    let unsettled = 0;
    for (let at = from; at < end; at += again.length) {
      const part = again.subarray(0, Math.min(again.length, end - at));
      read(part, at);
      unsettled += settle(bytes, at, part, read);
    }
    read(bytes.subarray(0, HEADER_BYTES), 0);
    for (const { offset, length } of tablesOf(bytes)) {
      if (offset + length <= bytes.length) read(bytes.subarray(offset, offset + length), offset);
    }
    const state = markCopy(bytes, ring, machine);
    return { bytes, unsettled, state };
  } finally {
    closeSync(fd);
  }
}

/** `part` is what lies at `at` now, `bytes` what lay there before. */
function settle(
  bytes: Buffer,
  at: number,
  part: Buffer,
  read: (into: Buffer, at: number) => void,
): number {
  let unsettled = 0;
  for (let page = 0; page < part.length; page += PAGE) {
    const end = Math.min(page + PAGE, part.length);
    if (bytes.compare(part, page, end, at + page, at + end) === 0) continue;
    for (let slot = page; slot < end; slot += RECORD_BYTES) {
      const place = at + slot;
      const now = part.subarray(slot, slot + RECORD_BYTES);
      const kept = bytes.subarray(place, place + RECORD_BYTES);
      let tries = 0;
      while (!kept.equals(now) && tries++ < TRIES) {
        now.copy(kept);
        read(now, place);
      }
      if (kept.equals(now)) continue;
      kept[0]! |= 1;
      unsettled++;
    }
  }
  return unsettled;
}

/** What RING.md has whoever dumps write into the copy; the state of the process. */
function markCopy(bytes: Buffer, { header }: RingFile, machine: Machine): string {
  const look = lookAt(header, bytes.readBigUInt64LE(HEADER.heartbeatNs), machine);
  const { realtimeNs, monotonicNs } = moment(machine);
  // By the ring's own clock: one of another machine or boot has nothing to do with ours.
  const theirs = realtimeNs - clockOffset(bytes);
  const copiedNs = isForeign({ header, process: look }, machine) ? theirs : monotonicNs;
  bytes.writeBigUInt64LE(realtimeNs, HEADER.copiedRealtimeNs);
  bytes.writeBigUInt64LE(copiedNs > 0n ? copiedNs : 0n, HEADER.copiedMonotonicNs);
  bytes[HEADER.processState] = look.state === "" ? 0 : look.state.charCodeAt(0);
  bytes.fill(0, HEADER.waitsIn, HEADER.waitsIn + TEXT_BYTES.waitsIn);
  bytes.write(look.waitsIn.slice(0, TEXT_BYTES.waitsIn - 1), HEADER.waitsIn, "latin1");
  return look.state;
}
