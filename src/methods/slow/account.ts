/**
 * The account of a rank's time that every answer about speed rests on: of each block of time, how long an operator was under way
 * (`inside`: it communicates, or waits for others), and of what it did instead, what its calls tell (`calls`). Columns, rank-major:
 * rank at place p in block k lies at p · blocks + k. All are shares of the usual block.
 */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { Wire } from "./wire-times.ts";

export interface Account {
  /** By place. */
  readonly ranks: readonly Rank[];
  readonly blocks: number;
  /** Number of each block's iteration; of stretches of time when they begin, milliseconds since 1970. */
  readonly numbers: Float64Array;
  readonly areIterations: boolean;
  /** The median block, and each one's length, milliseconds. */
  readonly unitMs: number;
  readonly lengthMs: Float64Array;
  readonly inside: Float64Array;
  /** From the CPU's first call of a block to its last. */
  readonly issuing: Float64Array;
  /** Groups in use and, first of all, the group of all ranks: places of their members, two or more, each set once. */
  readonly groups: readonly AccountGroup[];
  /** Ranks with the same number run the same program at the same place of the job. */
  readonly roles: Int32Array;
  /** By place: 1 where a partner of a group that is not everybody's left no record. */
  readonly besideUnseen: Uint8Array;
  readonly calls: CallShares;
  readonly wires: readonly Wire[];
}

export interface AccountGroup {
  /** In Job.groups; -1: all ranks. */
  readonly id: number;
  readonly places: Int32Array;
}

/** What collectives tell of who came late. */
export interface CallShares {
  /** How much later than the other members' median a rank issues its collectives, on average; NaN where it shares none. */
  readonly behind: Float64Array;
  /** The same beside members of its role alone. */
  readonly behindRole: Float64Array;
  /** What the others stay longer in its collectives than it does. */
  readonly waited: Float64Array;
  /** Of that, what passed between the rank's own call and the start of its operator: its GPU was not ready. */
  readonly waitedGpu: Float64Array;
  /** How much later than the others' its first call of the block comes. */
  readonly firstBehind: Float64Array;
}

export function row(column: Float64Array, place: number, blocks: number): Float64Array {
  return column.subarray(place * blocks, (place + 1) * blocks);
}

/** In each block the median of the other members, for each member: member-major. One sort a block. */
export function othersMedian(
  column: Float64Array,
  places: ArrayLike<number>,
  blocks: number,
): Float64Array {
  const { length } = places;
  const out = new Float64Array(length * blocks);
  const sorted = new Float64Array(length);
  for (let k = 0; k < blocks; k++) {
    for (let m = 0; m < length; m++) sorted[m] = column[places[m]! * blocks + k]!;
    sorted.sort();
    for (let m = 0; m < length; m++)
      out[m * blocks + k] = medianWithout(sorted, column[places[m]! * blocks + k]!);
  }
  return out;
}

/** Of sorted values, the median without one of them. */
export function medianWithout(sorted: Float64Array, own: number): number {
  const n = sorted.length - 1;
  const half = n >> 1;
  const at = (j: number): number => (own <= sorted[j]! ? sorted[j + 1]! : sorted[j]!);
  return n % 2 === 1 ? at(half) : (at(half - 1) + at(half)) / 2;
}

/** Difference of a series' medians behind a block and in front of it; of block 0 its median. What is NaN is not known. */
export function growthAt(series: Float64Array, block: number): number {
  const known = (values: Float64Array): number =>
    median(values.filter((value) => !Number.isNaN(value)));
  const behind = known(series.subarray(block));
  return block === 0 ? behind : behind - known(series.subarray(0, block));
}
