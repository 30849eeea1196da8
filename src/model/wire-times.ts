/** For how long what ranks send each other over the network was on the wire (probe/RING.md), in some iterations. */
import type { Rank } from "./ids.ts";

export interface WireTimes {
  readonly iterations: Float64Array;
  readonly links: readonly WireTime[];
}

/** One direction between two ranks. */
export interface WireTime {
  readonly from: Rank;
  readonly to: Rank;
  /** Milliseconds in each iteration; NaN where it is not known. */
  readonly ms: Float64Array;
}
