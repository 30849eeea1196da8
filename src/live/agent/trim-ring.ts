/** A copy of a ring cut to its last records and to the entries of its tables that are used: still a valid ring, and small. */
import {
  COMMUNICATOR_BYTES,
  CONNECTION_BYTES,
  HEADER,
  HEADER_BYTES,
  NAME_BYTES,
  RECORD_BYTES,
} from "../../ingest/probe-ring/layout.ts";
import { whole } from "./ring-header.ts";

const TABLES = [
  [HEADER.commsOffset, HEADER.commCount, COMMUNICATOR_BYTES],
  [HEADER.connectionsOffset, HEADER.connectionCount, CONNECTION_BYTES],
  [HEADER.namesOffset, HEADER.nameCount, NAME_BYTES],
] as const;
const LEAST_RECORDS = 64;

/** `copy` is a whole ring (headerDefect found nothing). */
export function trimRing(copy: Buffer, lastRecords: number): Buffer {
  const slots = copy.readUInt32LE(HEADER.recordCount);
  const wanted = Math.max(LEAST_RECORDS, Math.min(lastRecords, slots));
  const count = Math.min(slots, 2 ** Math.ceil(Math.log2(wanted)));
  const header = Buffer.from(copy.subarray(0, HEADER_BYTES));
  const parts: Buffer[] = [header];
  let end = HEADER_BYTES;
  const add = (part: Buffer): number => {
    const at = end;
    const rest = (8 - (part.length % 8)) % 8;
    parts.push(part, Buffer.alloc(rest));
    end += part.length + rest;
    return at;
  };
  for (const [field, usedField, each] of TABLES) {
    const [offset, capacity] = [copy.readUInt32LE(field), copy.readUInt32LE(field + 4)];
    const used = Math.min(copy.readUInt32LE(usedField), capacity);
    header.writeUInt32LE(add(copy.subarray(offset, offset + used * each)), field);
    header.writeUInt32LE(used, field + 4);
  }
  const words = copy.readUInt32LE(HEADER.wordsOffset);
  const wordsBytes = Math.min(
    whole(copy, HEADER.wordsLength),
    copy.readUInt32LE(HEADER.wordsBytes),
  );
  header.writeUInt32LE(add(copy.subarray(words, words + wordsBytes)), HEADER.wordsOffset);
  header.writeUInt32LE(wordsBytes, HEADER.wordsBytes);
  header.writeUInt32LE(count, HEADER.recordCount);
  header.writeBigUInt64LE(BigInt(end), HEADER.recordsOffset);
  const records = Buffer.alloc(count * RECORD_BYTES);
  const from = Number(copy.readBigUInt64LE(HEADER.recordsOffset));
  const head = whole(copy, HEADER.head);
  for (let ticket = Math.max(0, head - count); ticket < head; ticket++) {
    const at = from + (ticket % slots) * RECORD_BYTES;
    copy.copy(records, (ticket % count) * RECORD_BYTES, at, at + RECORD_BYTES);
  }
  parts.push(records);
  return Buffer.concat(parts);
}
