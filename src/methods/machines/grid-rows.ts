/** Samples of one device on the ticks of a grid. A tick without a sample stays NaN: absence is a signal of its own. */

export interface Ticks {
  readonly startS: number;
  readonly stepS: number;
  readonly ticks: number;
}

/** Counters that were not seen for longer than this many intervals give no rate for the time between. */
const MAX_GAP_STEPS = 4;

/** Mean of the samples of a tick. */
export function levelRow(
  row: Float64Array,
  { startS, stepS, ticks }: Ticks,
  timeS: Float64Array,
  value: Float64Array,
  from: number,
  to: number,
): void {
  row.fill(NaN);
  let last = -1;
  let inTick = 0;
  for (let i = from; i < to; i++) {
    const tick = Math.floor((timeS[i]! - startS) / stepS);
    if (tick < 0 || tick >= ticks) continue;
    if (tick === last) row[tick]! += (value[i]! - row[tick]!) / ++inTick;
    else {
      row[tick] = value[i]!;
      last = tick;
      inTick = 1;
    }
  }
}

/** What a counter gained a second, at the tick in which the later sample falls. A counter that fell was reset. */
export function rateRow(
  row: Float64Array,
  { startS, stepS, ticks }: Ticks,
  timeS: Float64Array,
  value: Float64Array,
  from: number,
  to: number,
): void {
  row.fill(NaN);
  let last = -1;
  let inTick = 0;
  for (let i = from + 1; i < to; i++) {
    const gained = value[i]! - value[i - 1]!;
    const passedS = timeS[i]! - timeS[i - 1]!;
    if (gained < 0 || passedS > MAX_GAP_STEPS * stepS) continue;
    const tick = Math.floor((timeS[i]! - startS) / stepS);
    if (tick < 0 || tick >= ticks) continue;
    const rate = gained / passedS;
    if (tick === last) row[tick]! += (rate - row[tick]!) / ++inTick;
    else {
      row[tick] = rate;
      last = tick;
      inTick = 1;
    }
  }
}

/** Carries the last value over ticks without one: for totals, which do not change. */
export function carryForward(row: Float64Array): void {
  let last = row.find((value) => !Number.isNaN(value)) ?? NaN;
  for (let i = 0; i < row.length; i++) {
    if (Number.isNaN(row[i]!)) row[i] = last;
    else last = row[i]!;
  }
}
