/**
 * How a rank's time passed, slot by slot, from the records of its native ring. Each record is read once, and again until it has
 * ended; a slot is told when it is over and what began in it has had time to be written down.
 */
import { FLAG, HEADER, NONE, RECORD } from "../../../ingest/probe-ring/layout.ts";
import { SLOT_MS } from "../../../model/rank-shares.ts";
import type { RankGroups } from "../rank-groups.ts";
import type { RingFollower } from "../rings/follow-ring.ts";
import { COLLECTIVE, isOperator, isShim, opOf } from "../rings/kept-operators.ts";
import { whole } from "../rings/ring-header.ts";
import { OpenOperators } from "./open-operators.ts";
import type { SlotRow } from "./shares-report.ts";
import { sweepSlot } from "./slot-sweep.ts";
import { WireShares } from "./wire-shares.ts";

/** Probes write times down as the GPU's proxy notices them: later than this only where that stands still. */
const SETTLE_MS = 200;
/** Records read in one tick: a ring that is met full must not keep everybody waiting. */
const READ_PER_TICK = 1 << 15;
/** Of a ring that is met in the middle the last slots are told as well: the service learns from them what is usual. */
const PAST_SLOTS = 120;
const SLOT_NS = SLOT_MS * 1e6;

export class RankShares {
  readonly #follower: RingFollower;
  readonly #groups: RankGroups;
  readonly #operators = new OpenOperators();
  readonly #wire = new WireShares();
  #cursor: number;
  #isFirst = true;
  /** Slots in front of this are told, or of no interest. */
  #next = NaN;
  #hasPlugin = false;

  constructor(follower: RingFollower, groups: RankGroups) {
    this.#follower = follower;
    this.#groups = groups;
    this.#cursor = follower.oldest;
  }

  get follower(): RingFollower {
    return this.#follower;
  }

  /** Slots that are over by now; `offsetNs`: milliseconds since 1970 less the ring's clock, in nanoseconds. */
  take(nowMs: number, offsetNs: number, add: (row: SlotRow) => void): void {
    this.#read();
    if (!this.#hasPlugin || this.#cursor < this.#follower.next) return;
    this.#operators.refresh(this.#follower);
    this.#wire.refresh(this.#follower, nowMs * 1e6 - offsetNs);
    const endedNs = whole(this.#follower.header, HEADER.endedNs);
    const endMs = endedNs > 0 ? (endedNs + offsetNs) / 1e6 : Infinity;
    const over = Math.floor(Math.min(nowMs - SETTLE_MS, endMs) / SLOT_MS);
    // Also where the clock was set.
    if (!(Math.abs(over - this.#next) <= PAST_SLOTS)) this.#begin(over, offsetNs);
    for (; this.#next < over; this.#next++) add(this.#close(this.#next, offsetNs));
  }

  /** With the slot behind the one in which the first operator started: before, the rank was not under way. */
  #begin(over: number, offsetNs: number): void {
    const met = Math.floor((this.#operators.firstStart + offsetNs) / SLOT_NS) + 1;
    this.#next = Math.max(over - PAST_SLOTS, met);
    this.#operators.finish(this.#next * SLOT_NS - offsetNs, () => undefined);
  }

  #read(): void {
    const { kept, oldest, next } = this.#follower;
    let ticket = Math.max(this.#cursor, oldest);
    // A ring that was met full: as much as one tick allows, the newest.
    if (this.#isFirst) ticket = Math.max(ticket, next - READ_PER_TICK);
    this.#isFirst = false;
    for (const last = Math.min(next, ticket + READ_PER_TICK); ticket < last; ticket++) {
      const place = this.#follower.placeOf(ticket);
      if (place < 0) {
        // Its writer may be at it now.
        this.#operators.expect(ticket);
        continue;
      }
      this.#meet(ticket, place, kept);
    }
    this.#cursor = ticket;
    this.#operators.meetExpected(this.#follower, (late, place) => this.#meet(late, place, kept));
  }

  #meet(ticket: number, place: number, kept: Buffer): void {
    if (!isOperator(kept, place) || isShim(kept, place)) return;
    this.#hasPlugin = true;
    const communicator = kept.readUInt16LE(place + RECORD.group);
    const isTransfer = opOf(kept, place) !== COLLECTIVE;
    const peer = isTransfer ? kept.readInt32LE(place + RECORD.c) : null;
    if (communicator !== NONE && this.#groups.isAlone(communicator, peer)) return;
    if ((kept[place + RECORD.flags]! & FLAG.failed) !== 0) return;
    // Of transfers among many nobody knows here which wire they took.
    const size = communicator === NONE ? 0 : this.#groups.sizeOf(communicator);
    const hasWire = isTransfer ? size === 2 : size >= 2;
    this.#operators.add(ticket, kept, place, hasWire);
  }

  #close(slot: number, offsetNs: number): SlotRow {
    const from = slot * SLOT_NS - offsetNs;
    const to = from + SLOT_NS;
    const operators = this.#operators;
    const { inside, late, gpu } = sweepSlot(operators, from, to);
    const { issued, ended, wires } = operators.finish(to, (ticket, endedNs, code) =>
      this.#wire.add(ticket, endedNs, code),
    );
    return {
      slot,
      inside: inside / SLOT_NS,
      late: late / SLOT_NS,
      gpu: gpu / SLOT_NS,
      onWire: this.#wire.take(SLOT_NS) / SLOT_NS,
      issued,
      ended,
      wires: wires.map(({ communicator, ns, count }) => ({
        key: this.#groups.list[this.#groups.indexOf(communicator)]!.key,
        ms: ns / 1e6 / count,
        count,
      })),
    };
  }
}
