/** What a process did last, in words: the newest record of its ring that says something of the work. */
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  FLAG,
  HEADER,
  KIND,
  NAME_BYTES,
  NONE,
  RECORD,
  RECORD_BYTES,
} from "../../../ingest/probe-ring/layout.ts";
import { textAt } from "../../../ingest/probe-ring/ring-bytes.ts";
import { whole } from "./ring-header.ts";
import { readFully, type RingFile } from "./ring-file.ts";

/** Looked at from the newest backwards. */
const LOOKED_AT = 512;
const COLLECTIVES = [
  "collective",
  "AllReduce",
  "AllGather",
  "ReduceScatter",
  "Broadcast",
  "Reduce",
  "AlltoAll",
  "Gather",
  "Scatter",
];

export interface LastOperator {
  /** "AllReduce 812 of tp", "iteration 40", "call torch.cuda@synchronize". */
  readonly what: string;
  readonly isOpen: boolean;
  /** Monotonic, of the moment when it was issued. */
  readonly issuedNs: bigint;
}

/** The last operator of a native ring; of a Python ring the innermost thing that goes on, or else the last one. */
export function lastOperator(fd: number, ring: RingFile, head: number): LastOperator | null {
  const { recordCount, recordsOffset, writer } = ring.header;
  const many = Math.min(LOOKED_AT, recordCount, head);
  const bytes = Buffer.alloc(RECORD_BYTES);
  let fallback: LastOperator | null = null;
  for (let back = 1; back <= many; back++) {
    const ticket = head - back;
    const at = recordsOffset + (ticket % recordCount) * RECORD_BYTES;
    if (!readFully(fd, bytes, at) || whole(bytes, RECORD.stamp) !== (ticket + 1) * 2) continue;
    const what = wordsOf(fd, bytes);
    if (what === null) continue;
    const isOpen =
      whole(bytes, RECORD.endedNs) === 0 && (bytes[RECORD.flags]! & FLAG.untimed) === 0;
    const found = { what, isOpen, issuedNs: bytes.readBigUInt64LE(RECORD.issuedNs) };
    const kind = bytes[RECORD.kind]!;
    if (writer === "python" ? isOpen : kind <= KIND.p2p) return found;
    fallback ??= found;
  }
  return fallback;
}

function wordsOf(fd: number, record: Buffer): string | null {
  const [kind, operation] = [record[RECORD.kind]!, record[RECORD.func]!];
  const group = record.readUInt16LE(RECORD.group);
  switch (kind) {
    case KIND.collective:
      return `${COLLECTIVES[operation] ?? COLLECTIVES[0]} ${record.readUInt32LE(RECORD.b)}${of(fd, group)}`;
    case KIND.p2p:
      return `${operation === 1 ? "send to" : "receive from"} ${record.readInt32LE(RECORD.c)}${of(fd, group)}`;
    case KIND.matrix:
      return `matrix product ${record.readUInt32LE(RECORD.a)}×${record.readUInt32LE(RECORD.a + 4)}×${record.readUInt32LE(RECORD.b)}`;
    case KIND.pythonCall:
      return `call ${nameOf(fd, group)}`;
    case KIND.collection:
      return `garbage collection of generation ${operation}`;
    case KIND.iteration:
      return `iteration ${whole(record, RECORD.a)}`;
    case KIND.kernel:
      return `kernel ${nameOf(fd, group)}`;
    default:
      return null;
  }
}

/** " of tp (size 8)": the communicator by its name, or by its size where it has none. */
function of(fd: number, group: number): string {
  const entry = entryOf(fd, HEADER.commsOffset, COMMUNICATOR_BYTES, group);
  if (entry === null) return "";
  const name = textAt(entry, COMMUNICATOR.name, COMMUNICATOR.nameBytes);
  return ` of ${name === "" ? "a group" : name} (size ${entry.readInt32LE(COMMUNICATOR.size)})`;
}

function nameOf(fd: number, index: number): string {
  const entry = entryOf(fd, HEADER.namesOffset, NAME_BYTES, index);
  return entry === null ? "(no name)" : textAt(entry, 0, NAME_BYTES);
}

function entryOf(fd: number, table: number, each: number, index: number): Buffer | null {
  if (index === NONE) return null;
  const where = Buffer.alloc(8);
  if (!readFully(fd, where, table) || index >= where.readUInt32LE(4)) return null;
  const entry = Buffer.alloc(each);
  return readFully(fd, entry, where.readUInt32LE(0) + index * each) ? entry : null;
}
