/**
 * How the time of a running job's ranks passed, half second by half second: agents tell it, the judge of slowness reads it.
 * In 16 bits a number, so that a rank costs 24 bytes a second.
 */

/** Slots begin at multiples of this since 1970: agents agree on them without talking. */
export const SLOT_MS = 500;
/** Of a rank that was not heard of. */
export const UNKNOWN_SHARE = 65_535;
/** A whole slot. */
export const WHOLE_SHARE = 65_534;

/** Slot after slot, in each a number of every rank (every wire). */
export interface ShareColumns {
  /** In parts of WHOLE_SHARE: inside operators; outside, before the next one was issued; outside, after it. */
  readonly inside: Uint16Array;
  readonly late: Uint16Array;
  readonly gpu: Uint16Array;
  /** For how long what it sends over the network was on the wire; 0 where nobody knows. */
  readonly onWire: Uint16Array;
  /** Operators that were issued, and that ended. */
  readonly issued: Uint16Array;
  readonly ended: Uint16Array;
  /**
   * Of what ended over a communicator in the slot: milliseconds of an operator on average, on the member here that was inside
   * them for the shortest time, so that hardly anything of it is waiting; NaN where none ended. And how many ended.
   */
  readonly wireMs: Float32Array;
  readonly wireCount: Uint16Array;
}
