/**
 * Which records of a ring are whole, in the order of their tickets. The ring may have been written while it was copied:
 * a stamp that is odd, of another slot or of a lap long past belongs to no record that can be trusted.
 */
import { HEADER, RECORD, RECORD_BYTES } from "./layout.ts";
import { u64, type RingBytes } from "./ring-bytes.ts";

export interface Records {
  /** Offset of each record in the file, oldest first. */
  readonly at: Float64Array;
  /** Tickets of the same records. */
  readonly ticket: Float64Array;
  /** Slots that were being written, or make no sense. */
  readonly torn: number;
}

export function wholeRecords({ view, slots, recordCount }: RingBytes): Records {
  const head = u64(view, HEADER.head);
  const tickets = new Float64Array(slots.count);
  let count = 0;
  let torn = 0;
  let ascends = true;
  // From the oldest slot on, so that tickets come in order but for what other threads overtook.
  const first = head % recordCount;
  for (let i = 0; i < recordCount; i++) {
    const slot = (first + i) % recordCount;
    if (slot >= slots.count) continue;
    const stamp = u64(view, slots.offset + slot * RECORD_BYTES + RECORD.stamp);
    if (stamp === 0) continue;
    const ticket = stamp / 2 - 1;
    const isWhole =
      stamp % 2 === 0 &&
      ticket % recordCount === slot &&
      ticket >= head - 2 * recordCount &&
      // The header was read first: what came since may be there.
      ticket < head + recordCount;
    if (!isWhole) {
      torn++;
      continue;
    }
    if (count > 0 && tickets[count - 1]! > ticket) ascends = false;
    tickets[count++] = ticket;
  }
  const ticket = tickets.subarray(0, count);
  if (!ascends) ticket.sort();
  const at = ticket.map((t) => slots.offset + (t % recordCount) * RECORD_BYTES);
  return { at, ticket, torn };
}
