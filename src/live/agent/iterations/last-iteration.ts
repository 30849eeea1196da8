/** The number of the newest iteration that a ring tells of. */
import { HEADER, KIND, RECORD, RECORD_BYTES } from "../../../ingest/probe-ring/layout.ts";
import { readFully, type RingFile } from "../rings/ring-file.ts";
import { whole } from "../rings/ring-header.ts";

/** -1 where it tells of none. */
export function lastIteration(fd: number, ring: RingFile): number {
  const { recordCount, recordsOffset } = ring.header;
  const head = Buffer.alloc(8);
  const records = Buffer.allocUnsafe(recordCount * RECORD_BYTES);
  if (!readFully(fd, records, recordsOffset) || !readFully(fd, head, HEADER.head)) return -1;
  const oldest = whole(head, 0) - recordCount;
  let last = -1;
  for (let at = 0; at < records.length; at += RECORD_BYTES) {
    const stamp = whole(records, at);
    if (stamp === 0 || stamp % 2 === 1 || stamp / 2 - 1 < oldest) continue;
    if (records[at + RECORD.kind] === KIND.iteration)
      last = Math.max(last, whole(records, at + RECORD.a));
  }
  return last;
}
