/**
 * Operators handed out in small pieces: the logs of a large job lie on its machines, and a search needs a handful
 * of ranks whole and single operators of others (Holmes §5.2 fetches logs on demand, too). A source counts what
 * it hands out.
 */
import type { Rank } from "../../../model/ids.ts";

/** What a record takes in a log: times, durations, communicator, sequence, rank, size. */
export const RECORD_BYTES = 40;

export const COLLECTIVE = 0;
export const SENDING = 1;
export const RECEIVING = 2;

/** One rank's operators in one iteration, in the order in which it issued them. */
export interface RankIteration {
  /** COLLECTIVE, SENDING or RECEIVING. */
  readonly kind: Uint8Array;
  /** The job's group of a collective; -1 for transfers. */
  readonly group: Int32Array;
  /** The other side of a transfer; -1 for collectives. */
  readonly peer: Int32Array;
}

/** Durations in milliseconds, iteration-major: iteration i of those asked for, place p at i · places + p. */
export type Durations = Float64Array;

export interface OperatorSource {
  readonly worldSize: number;
  /** Ranks that left operators, ascending. */
  readonly ranks: readonly Rank[];
  /** Whether the rank's operators can be had. */
  has(rank: Rank): boolean;
  /** Handed out so far, and what all logs of these iterations hold. */
  readonly bytes: number;
  readonly totalBytes: number;
  /** How often something was asked for that is not there yet; absent where all is there. */
  readonly missed?: number;
  /** What a rank runs, as one whole iteration of its log tells. */
  iterationOf(rank: Rank, iteration: number): RankIteration;
  /** Durations of a rank's operators at these places of its iterations. */
  placesOf(rank: Rank, places: readonly number[], iterations: readonly number[]): Durations;
  /** The nth collectives of a group within an iteration, by member; NaN where there are fewer. */
  collectivesOf(
    ranks: readonly Rank[],
    group: number,
    nth: readonly number[],
    iterations: readonly number[],
  ): Durations[];
  /** The nth transfers from a rank to another within an iteration, as one of both sides saw them. */
  transfersOf(
    side: Rank,
    from: Rank,
    to: Rank,
    nth: readonly number[],
    iterations: readonly number[],
  ): Durations;
}

/** Iterations to compare; which are slow is the tracker's answer. */
export interface Split {
  readonly normal: readonly number[];
  readonly slow: readonly number[];
  /** How long they took, in the same order, milliseconds. */
  readonly normalMs: readonly number[];
  readonly slowMs: readonly number[];
  /** Read, so that evidence spans them, and compared with nothing. */
  readonly also?: readonly number[];
}
