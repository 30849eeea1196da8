/**
 * Writes rings as the probes do (probe/RING.md). Times are nanoseconds since the ring was made; those of a ring that was
 * made at t = 0 of the simulation are simulated times.
 */
import * as L from "../../../src/ingest/probe-ring/layout.ts";
import { EmptyRing } from "../../../src/live/fleet/empty-ring.ts";

export type { RingAbout } from "../../../src/live/fleet/empty-ring.ts";

/** One record; what is left out is 0 (function, times), unknown (data type) or none (group). */
export interface RecordToWrite {
  readonly kind: number;
  readonly func?: number;
  readonly dtype?: number;
  readonly flags?: number;
  readonly group?: number;
  readonly a?: number;
  readonly b?: number;
  readonly c?: number;
  readonly d?: number;
  readonly e?: number;
  readonly issuedNs: number;
  readonly startedNs?: number;
  readonly endedNs?: number;
}

export class RingWriter extends EmptyRing {
  #tickets = 0;

  /** The pair of clocks, as it is refreshed; `steppedNs` where the time of day was set meanwhile. */
  anchor(atNs: number, steppedNs = 0n): void {
    const at = BigInt(Math.round(atNs));
    this.view.setBigUint64(L.HEADER.anchorRealtimeNs, this.madeAt + at + steppedNs, true);
    this.view.setBigUint64(L.HEADER.anchorMonotonicNs, this.base + at, true);
  }

  heartbeat(atNs: number): void {
    this.time(L.HEADER.heartbeatNs, atNs);
  }

  /** The record's ticket. */
  record(one: RecordToWrite): number {
    const ticket = this.#tickets++;
    const at = this.offsets.records + (ticket % this.recordCount) * L.RECORD_BYTES;
    this.bytes.fill(0, at, at + L.RECORD_BYTES);
    this.bytes[at + L.RECORD.kind] = one.kind;
    this.bytes[at + L.RECORD.func] = one.func ?? 0;
    this.bytes[at + L.RECORD.dtype] = one.dtype ?? 255;
    this.bytes[at + L.RECORD.flags] = one.flags ?? 0;
    this.view.setUint16(at + L.RECORD.group, one.group ?? L.NONE, true);
    this.u64(at + L.RECORD.a, one.a ?? 0);
    this.u32(at + L.RECORD.b, one.b ?? 0);
    this.i32(at + L.RECORD.c, one.c ?? 0);
    this.u32(at + L.RECORD.d, one.d ?? 0);
    this.u32(at + L.RECORD.e, one.e ?? 0);
    this.time(at + L.RECORD.issuedNs, one.issuedNs);
    if (one.startedNs !== undefined) this.time(at + L.RECORD.startedNs, one.startedNs);
    if (one.endedNs !== undefined) this.time(at + L.RECORD.endedNs, one.endedNs);
    this.u64(at + L.RECORD.stamp, (ticket + 1) * 2);
    this.u64(L.HEADER.head, this.#tickets);
    return ticket;
  }

  /** What the copying process adds. */
  copied(atNs: number, state = "", waitsIn = ""): void {
    const at = BigInt(Math.round(atNs));
    this.view.setBigUint64(L.HEADER.copiedRealtimeNs, this.madeAt + at, true);
    this.view.setBigUint64(L.HEADER.copiedMonotonicNs, this.base + at, true);
    this.bytes[L.HEADER.processState] = state === "" ? 0 : state.charCodeAt(0);
    this.text(L.HEADER.waitsIn, waitsIn, L.TEXT_BYTES.waitsIn);
  }
}
