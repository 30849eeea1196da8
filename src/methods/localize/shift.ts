/** Where a quiet series became longer: own times of a rank. */
import { LevelTracker } from "../../maths/level-tracker.ts";
import { WARM_UP } from "./accounts.ts";

export interface Shift {
  /** Index of its first iteration, and number of its last. */
  readonly from: number;
  readonly to: number;
  /** Milliseconds lost over its length. */
  readonly costMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

/** The rise that costs most; null where there is none. */
export function worstShift(
  iteration: ArrayLike<number>,
  ms: Float64Array,
  levels: { readonly minRatio: number; readonly driftRatio: number },
): Shift | null {
  const tracker = new LevelTracker(levels);
  const shifts: { start: number; before: number; after: number }[] = [];
  for (let i = 0; i < ms.length; i++) {
    if (iteration[i]! <= WARM_UP || !(ms[i]! > 0)) continue;
    const shift = tracker.push(i, ms[i]!);
    if (shift) shifts.push(shift);
  }
  let worst: Shift | null = null;
  for (const [k, { start, before, after }] of shifts.entries()) {
    if (after <= before) continue;
    const end = shifts[k + 1]?.start ?? iteration.length;
    const costMs = (after - before) * (end - start);
    const to = iteration[end - 1]!;
    if (!worst || costMs > worst.costMs)
      worst = { from: start, to, costMs, beforeMs: before, afterMs: after };
  }
  return worst;
}
