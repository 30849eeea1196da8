/** Where a quiet series became longer: own times of a rank. */
import { LevelTracker } from "../../maths/level-tracker.ts";
import { median, spread } from "../../maths/robust.ts";
import { WARM_UP } from "./time-breakdown.ts";

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

/** How far a value may be from the middle before it counts as no farther: single iterations go far astray. */
const CLIPPED = 3;

/**
 * The rise to the end of the record that stands out most from the spread on both sides of it; null where none is upwards. It
 * sees the whole record at once, and so finds what the tracker, which sees it grow, loses in noise around the change.
 */
export function lastingRise(
  iteration: ArrayLike<number>,
  ms: Float64Array,
  fewest: number,
): Shift | null {
  const at = [...ms.keys()].filter((i) => iteration[i]! > WARM_UP && Number.isFinite(ms[i]!));
  const values = at.map((i) => ms[i]!);
  const centre = median(values);
  const reach = CLIPPED * spread(values, centre);
  const sums = [0];
  for (const value of values)
    sums.push(sums.at(-1)! + Math.min(centre + reach, Math.max(centre - reach, value)));
  let best = { split: -1, stat: 0 };
  for (let split = fewest; split <= values.length - fewest; split++) {
    const before = sums[split]! / split;
    const after = (sums.at(-1)! - sums[split]!) / (values.length - split);
    const stat = (after - before) / Math.sqrt(1 / split + 1 / (values.length - split));
    if (stat > best.stat) best = { split, stat };
  }
  if (best.split < 0) return null;
  const beforeMs = median(values.slice(0, best.split));
  const afterMs = median(values.slice(best.split));
  const costMs = (afterMs - beforeMs) * (values.length - best.split);
  const to = iteration[ms.length - 1]!;
  return afterMs > beforeMs ? { from: at[best.split]!, to, costMs, beforeMs, afterMs } : null;
}
