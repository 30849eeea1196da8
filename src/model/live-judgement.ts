/** What the judge of slowness says of a running job after each block of time (methods/slow/online). */
import type { Compared } from "./facts.ts";
import type { Rank } from "./ids.ts";

export interface LiveJudgement {
  /** learning: too little is known of the healthy job; stands: nothing ends any more, so nobody is slow. */
  readonly state: "learning" | "healthy" | "stands" | "slow";
  /** End of the last block that was judged, milliseconds since 1970. */
  readonly untilMs: number;
  /** Who is slow now, the surest first. */
  readonly culprits: readonly LiveCulprit[];
  /** Who was named before, and is not slow any more; or never was: another is, and the name was wrong. */
  readonly ended: readonly {
    readonly id: number;
    readonly untilMs: number;
    readonly why: "over" | "revised";
  }[];
}

export interface LiveCulprit {
  /** New for each fault; the same as long as it lasts, while probability and cause are revised. */
  readonly id: number;
  /** all: everybody's iterations grew alike, and nobody leads. */
  readonly type: "rank" | "machine" | "wire" | "all";
  readonly ranks: readonly Rank[];
  /** null: its GPU or its CPU, which the record does not tell apart. */
  readonly cause: "gpu-slow" | "cpu-stall" | "network-slow" | null;
  /** Of the ranks; and of the cause, given the ranks. */
  readonly probability: number;
  readonly causeProbability: number;
  readonly shape: "lasting" | "now-and-then";
  readonly sinceMs: number;
  readonly compared: Compared;
}
