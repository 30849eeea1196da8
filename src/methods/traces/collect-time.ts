/**
 * How long the CPU collects garbage. Where every rank pauses by itself, each mostly waits for the others' pauses, and its
 * own fall into that wait: no GPU starves, and the step is longer all the same (FLARE §6.4, Unhealthy-GC).
 */
import { overlapWith, unionOf } from "../../maths/intervals.ts";
import { GARBAGE_COLLECTION } from "../../model/kernels.ts";
import type { Measured } from "./measured.ts";

/** Of a rank's profile, where it has them; baselines stored earlier do not. */
export interface CollectTimes {
  /** CPU time inside garbage collection, by step, shares of the step. */
  readonly collectShares?: readonly number[];
}

export function collectShares({ trace: { hostEvents }, steps }: Measured): number[] {
  const { startNs, durNs, count, kind } = hostEvents;
  const collects = unionOf(startNs, durNs, count, (row) => kind[row] === GARBAGE_COLLECTION);
  return steps.startNs.map((from, i) => {
    const to = steps.endNs[i]!;
    return overlapWith(collects, from, to) / (to - from);
  });
}
