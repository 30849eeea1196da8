/** Operators of a rank that have not ended, as columns: what is needed of a ring's records to say what its time is spent on. */
import { RECORD, WIRE } from "../../../ingest/probe-ring/layout.ts";
import type { RingFollower } from "../rings/follow-ring.ts";
import { isOpen } from "../rings/follow-ring.ts";
import { whole } from "../rings/ring-header.ts";
import { COLLECTIVE, opOf, RECEIVING } from "../rings/kept-operators.ts";
import { NEVER, type Operators } from "./slot-sweep.ts";
import { mendStarts, type StartColumns } from "./true-starts.ts";

/** Operators followed at once; beyond that the oldest are let go. */
const MOST_FOLLOWED = 8192;
/** So long after its issue an operator that nobody times may still turn out to be timed. */
const DOUBTED_NS = 1e9;
/** Start and end of an operator that nobody times: before everything. */
const UNTIMED = -1;
/** Records looked for again that were not there when their turn came. */
const MOST_EXPECTED = 64;

interface EndedOperators {
  readonly issued: number;
  readonly ended: number;
  readonly wires: readonly { readonly communicator: number; ns: number; count: number }[];
}

export class OpenOperators implements Operators, StartColumns {
  count = 0;
  issued = new Float64Array(256);
  stamped = new Float64Array(256);
  started = new Float64Array(256);
  ended = new Float64Array(256);
  communicator = new Uint16Array(256);
  isTransfer = new Uint8Array(256);
  #ticket = new Float64Array(256);
  /** Whether something can be said of a wire. */
  #hasWire = new Uint8Array(256);
  #isCounted = new Uint8Array(256);
  /** Whether it sends, and for how long its sends were on the wire, as its record has it. */
  #sends = new Uint8Array(256);
  #code = new Uint16Array(256);
  #expected: number[] = [];
  /** By communicator: when the last of its operators ended that was taken out. */
  readonly #lastEnd = new Map<number, number>();
  /** The earliest start that was met. */
  firstStart = NEVER;

  add(ticket: number, bytes: Buffer, place: number, hasWire: boolean): void {
    if (this.count === this.issued.length) this.#makeRoom();
    const i = this.count++;
    this.#ticket[i] = ticket;
    this.communicator[i] = bytes.readUInt16LE(place + RECORD.group);
    const op = opOf(bytes, place);
    this.isTransfer[i] = op === COLLECTIVE ? 0 : 1;
    this.#sends[i] = op === RECEIVING ? 0 : 1;
    this.#hasWire[i] = hasWire ? 1 : 0;
    this.#isCounted[i] = 0;
    this.#look(i, bytes, place);
  }

  /** A record that is not there yet. */
  expect(ticket: number): void {
    this.#expected.push(ticket);
  }

  meetExpected(follower: RingFollower, meet: (ticket: number, place: number) => void): void {
    if (this.#expected.length === 0) return;
    const left = this.#expected.filter((ticket) => {
      const place = follower.placeOf(ticket);
      if (place >= 0) meet(ticket, place);
      return place < 0 && ticket >= follower.oldest;
    });
    this.#expected = left.slice(-MOST_EXPECTED);
  }

  /** Looks again at those that were open. */
  refresh(follower: RingFollower): void {
    const { kept } = follower;
    for (let i = 0; i < this.count; i++) {
      if (this.ended[i]! < NEVER && this.ended[i]! !== UNTIMED) continue;
      const place = follower.placeOf(this.#ticket[i]!);
      if (place >= 0) this.#look(i, kept, place);
      else if (this.#ticket[i]! < follower.oldest) this.ended[i] = this.issued[i]!;
    }
    mendStarts(this, (communicator) => this.#lastEnd.get(communicator) ?? 0);
  }

  /** Takes out what ended before this moment, and counts. */
  finish(
    to: number,
    sent: (ticket: number, endedNs: number, code: number) => void,
  ): EndedOperators {
    let issued = 0;
    let ended = 0;
    let kept = 0;
    const wires: { communicator: number; ns: number; count: number }[] = [];
    for (let i = 0; i < this.count; i++) {
      if (this.#isCounted[i] === 0 && this.issued[i]! < to) {
        this.#isCounted[i] = 1;
        issued++;
      }
      const isTimed = this.ended[i]! !== UNTIMED;
      if (isTimed ? this.ended[i]! < to : this.issued[i]! < to - DOUBTED_NS) {
        ended++;
        if (!isTimed) continue;
        this.#leave(wires, i);
        if (this.#sends[i] === 1) sent(this.#ticket[i]!, this.ended[i]!, this.#code[i]!);
        continue;
      }
      this.#move(i, kept++);
    }
    this.count = kept;
    if (kept > MOST_FOLLOWED) this.#letGo(kept - MOST_FOLLOWED);
    return { issued, ended, wires };
  }

  #leave(wires: { communicator: number; ns: number; count: number }[], i: number): void {
    const communicator = this.communicator[i]!;
    const last = this.#lastEnd.get(communicator) ?? 0;
    if (this.ended[i]! > last) this.#lastEnd.set(communicator, this.ended[i]!);
    const ns = this.ended[i]! - this.started[i]!;
    if (this.#hasWire[i] === 0 || !(ns >= 0)) return;
    const wire = wires.find((one) => one.communicator === communicator);
    if (wire === undefined) wires.push({ communicator, ns, count: 1 });
    else {
      wire.ns += ns;
      wire.count++;
    }
  }

  #look(i: number, bytes: Buffer, place: number): void {
    this.issued[i] = whole(bytes, place + RECORD.issuedNs);
    const started = whole(bytes, place + RECORD.startedNs);
    const ended = whole(bytes, place + RECORD.endedNs);
    this.#code[i] = bytes.readUInt16LE(place + WIRE);
    this.stamped[i] = started === 0 ? NEVER : started;
    if (started > 0 && started < this.firstStart) this.firstStart = started;
    // Whose end nobody will tell is nothing to wait for.
    const isUntimed = !isOpen(bytes, place) && ended === 0;
    this.ended[i] = isUntimed ? UNTIMED : ended === 0 ? NEVER : ended;
    if (isUntimed) this.stamped[i] = UNTIMED;
  }

  #move(from: number, to: number): void {
    if (from === to) return;
    this.issued[to] = this.issued[from]!;
    this.stamped[to] = this.stamped[from]!;
    this.started[to] = this.started[from]!;
    this.ended[to] = this.ended[from]!;
    this.communicator[to] = this.communicator[from]!;
    this.isTransfer[to] = this.isTransfer[from]!;
    this.#ticket[to] = this.#ticket[from]!;
    this.#hasWire[to] = this.#hasWire[from]!;
    this.#isCounted[to] = this.#isCounted[from]!;
    this.#sends[to] = this.#sends[from]!;
    this.#code[to] = this.#code[from]!;
  }

  #letGo(many: number): void {
    for (let i = many; i < this.count; i++) this.#move(i, i - many);
    this.count -= many;
  }

  #makeRoom(): void {
    this.issued = doubled(this.issued);
    this.stamped = doubled(this.stamped);
    this.started = doubled(this.started);
    this.ended = doubled(this.ended);
    this.communicator = doubled(this.communicator);
    this.isTransfer = doubled(this.isTransfer);
    this.#ticket = doubled(this.#ticket);
    this.#hasWire = doubled(this.#hasWire);
    this.#isCounted = doubled(this.#isCounted);
    this.#sends = doubled(this.#sends);
    this.#code = doubled(this.#code);
  }
}

type Column = Float64Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

function doubled<C extends Column>(column: C): C {
  const larger = new (column.constructor as new (length: number) => C)(2 * column.length);
  larger.set(column);
  return larger;
}
