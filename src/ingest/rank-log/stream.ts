/** What is known of one writer of a log while it is read. */
import type { FailureClass } from "../failure-class.ts";
import type { Stamp } from "../log-time.ts";
import type { LogSeries } from "./log-series.ts";
import { Pauses } from "./pauses.ts";
import { Tracebacks } from "./tracebacks.ts";
import type { Raised } from "./tracebacks.ts";

/** A failure as found, before the writer's rank is settled. */
export interface Found {
  readonly stream: Stream;
  readonly line: number;
  readonly stamp: Stamp | null;
  readonly class: FailureClass;
  readonly text: string;
  readonly at: string | null;
  /** The last line before it in which the writer reports an iteration. */
  readonly progressLine: number;
  /** Where the text is about another process than its writer. */
  readonly about:
    | { readonly local: number }
    | { readonly rank: number }
    | { readonly host: string; readonly pid: number }
    | null;
}

/** What a prefix says of a writer; -1 and "" where it says nothing. */
export interface Identity {
  readonly rank: number;
  /** torchrun's local rank. */
  readonly local: number;
  /** srun's task. */
  readonly task: number;
  /** Ray's process, a host's tag. */
  readonly writer: string;
}

export class Stream {
  readonly is: Identity;
  readonly tracebacks: Tracebacks;
  /** For statements about other ranks, which must not count as this writer's. */
  readonly unknown: Stream;
  lines = 0;
  lastIteration = -1;
  iterationLine = 0;
  /** The last line that looks as if it began with a time. */
  stamped = "";
  /** The iterations that it reports; null before the first. */
  series: LogSeries | null = null;
  readonly pauses = new Pauses();
  lastLine = 0;
  lastText = "";
  lastStamped = "";
  /** Whether a failure was reported: what comes after is mostly its aftermath. */
  troubled = false;
  finished = false;
  dumpLine = 0;
  /** "terminate called …", waiting for its what(). */
  terminateLine = 0;
  #globalRank = -1;
  #ambiguous = false;

  constructor(is: Identity, onRaised: (raised: Raised, by: Stream) => void, unknown?: Stream) {
    this.is = is;
    this.unknown = unknown ?? this;
    this.tracebacks = new Tracebacks((raised) => onRaised(raised, this));
  }

  /** A line of this writer states its global rank. */
  sayGlobalRank(rank: number): void {
    if (this.#globalRank >= 0 && this.#globalRank !== rank) this.#ambiguous = true;
    this.#globalRank = rank;
  }

  /** Whether several processes write here. */
  get isAmbiguous(): boolean {
    return this.#ambiguous;
  }

  get globalRank(): number {
    return this.#ambiguous ? -1 : this.#globalRank;
  }
}
