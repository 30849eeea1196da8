/**
 * How much of the agent's memory each ring may have. Half is for the rings as they are: where that is used up, further
 * rings are refused. The other half is for what is kept beyond, in equal shares.
 */
import { RECORD_BYTES } from "../../../ingest/probe-ring/layout.ts";
import type { RingFollower } from "./follow-ring.ts";
import type { RingFile } from "./ring-file.ts";

/** Rings that the memory is shared among, unless there are more. */
const RINGS = 16;
/** A follower's two buffers hold this many records each at most. */
const BATCH = 8192;

export class MemoryBudget {
  readonly #half: number;
  #rings = 0;
  #base = 0;
  #grown = 0;

  constructor(bytes: number) {
    this.#half = bytes / 2;
  }

  /** Before a tick: as things are now. */
  count(followers: readonly RingFollower[]): void {
    this.#rings = followers.length;
    this.#base = 0;
    this.#grown = 0;
    for (const { ring, kept } of followers) {
      this.#base += baseBytes(ring);
      this.#grown += kept.length - ring.header.recordCount * RECORD_BYTES;
    }
  }

  get mostRecords(): number {
    const share = this.#half / Math.max(RINGS, this.#rings) / RECORD_BYTES;
    return 2 ** Math.floor(Math.log2(Math.max(1, share)));
  }

  readonly refuse = (ring: RingFile): string | null => {
    const bytes = baseBytes(ring);
    if (this.#base + bytes > this.#half)
      return "more rings than fit into the memory: those found last are not followed (--memory)";
    this.#base += bytes;
    this.#rings++;
    return null;
  };

  readonly mayGrow = (bytes: number): boolean => {
    if (this.#grown + bytes > this.#half) return false;
    this.#grown += bytes;
    return true;
  };
}

function baseBytes({ header }: RingFile): number {
  return (header.recordCount + 2 * Math.min(BATCH, header.recordCount)) * RECORD_BYTES;
}
