/**
 * For how long a rank's sends were on the wire, slot by slot. A record says it once its last send is through, which may be after its
 * kernel has ended: such records are read again for a while. What was on the wire for longer than the slot in which that becomes
 * known is told in the next ones.
 */
import { HEADER, RECORD_BYTES, WIRE, wireMs } from "../../../ingest/probe-ring/layout.ts";
import type { RingFollower } from "../rings/follow-ring.ts";
import { whole } from "../rings/ring-header.ts";

/** So long after an operator has ended its sends are through, or nobody will say so. */
const THROUGH_NS = 4e9;
/** Records that are read again at once; beyond that the oldest are let go. */
const MOST_WAITING = 4096;
/** More than a send takes that is still told of: the rest of it is nobody's. */
const MOST_OWED_NS = 30e9;

export class WireShares {
  /** Tickets of operators that have ended and do not say for how long they sent, ascending; and when they ended. */
  #tickets: number[] = [];
  #ended: number[] = [];
  #buffer = Buffer.alloc(0);
  #owedNs = 0;

  /** An operator that sends has ended. `code`: what its record says by now. */
  add(ticket: number, endedNs: number, code: number): void {
    if (code !== 0) this.#owedNs += wireMs(code) * 1e6;
    else {
      this.#tickets.push(ticket);
      this.#ended.push(endedNs);
    }
  }

  /** Looks again at records that said nothing. */
  refresh(follower: RingFollower, nowNs: number): void {
    const first = this.#firstOf(nowNs);
    // Without a connection nothing is sent over the network.
    const sends = follower.header.readUInt32LE(HEADER.connectionCount) > 0;
    const tickets = sends ? this.#tickets.slice(first) : [];
    const ended = sends ? this.#ended.slice(first) : [];
    [this.#tickets, this.#ended] = [[], []];
    if (tickets.length === 0) return;
    const many = tickets.at(-1)! - tickets[0]! + 1;
    if (!this.#read(follower, tickets[0]!, many)) return;
    for (const [i, ticket] of tickets.entries()) {
      const at = (ticket - tickets[0]!) * RECORD_BYTES;
      const isThere = whole(this.#buffer, at) === (ticket + 1) * 2;
      this.add(ticket, ended[i]!, isThere ? this.#buffer.readUInt16LE(at + WIRE) : 0);
    }
  }

  /** What is told of a slot of this length. */
  take(slotNs: number): number {
    const now = Math.min(slotNs, this.#owedNs);
    this.#owedNs = Math.min(MOST_OWED_NS, this.#owedNs - now);
    return now;
  }

  #firstOf(nowNs: number): number {
    const young = this.#ended.findIndex((ns) => ns > nowNs - THROUGH_NS);
    if (young < 0) return this.#ended.length;
    const last = this.#tickets.at(-1)!;
    const near = this.#tickets.findIndex((ticket) => ticket > last - MOST_WAITING);
    return Math.max(young, near);
  }

  /** Records as they are in the file now. */
  #read(follower: RingFollower, first: number, many: number): boolean {
    const { recordCount, recordsOffset } = follower.ring.header;
    if (this.#buffer.length < many * RECORD_BYTES)
      this.#buffer = Buffer.alloc(2 * many * RECORD_BYTES);
    for (let done = 0; done < many;) {
      const slot = (first + done) % recordCount;
      const some = Math.min(many - done, recordCount - slot);
      const into = this.#buffer.subarray(done * RECORD_BYTES, (done + some) * RECORD_BYTES);
      if (!follower.readAt(into, recordsOffset + slot * RECORD_BYTES)) return false;
      done += some;
    }
    return true;
  }
}
