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
  let rate = 0;
  /** Up to which sample `rate` holds. */
  let until = from;
  for (let i = from + 1; i < to; i++) {
    if (i > until) {
      until = changeAfter(value, i, to);
      const passedS = timeS[until]! - timeS[i - 1]!;
      const isOld = timeS[i]! - timeS[i - 1]! > MAX_GAP_STEPS * stepS;
      rate = isOld ? NaN : (value[until]! - value[i - 1]!) / passedS;
    }
    if (!(rate >= 0)) continue;
    const tick = Math.floor((timeS[i]! - startS) / stepS);
    if (tick < 0 || tick >= ticks) continue;
    if (tick === last) row[tick]! += (rate - row[tick]!) / ++inTick;
    else {
      row[tick] = rate;
      last = tick;
      inTick = 1;
    }
  }
}

/** An exporter that is scraped more often than it looks repeats itself once or twice: the gain belongs to all of it. */
const MOST_REPEATS = 2;

function changeAfter(value: Float64Array, i: number, to: number): number {
  const before = value[i - 1]!;
  for (let next = i; next < to && next <= i + MOST_REPEATS; next++)
    if (value[next] !== before) return value[next]! > before ? next : i;
  return i;
}

/** An exporter that starts anew may show 0 for a scrape or two, and then what it had. */
const MOST_DIP = 4;

/** What a counter gained since its first sample, resets and dips left out, at the tick of each sample. */
export function gainedRow(
  row: Float64Array,
  { startS, stepS, ticks }: Ticks,
  timeS: Float64Array,
  value: Float64Array,
  from: number,
  to: number,
): void {
  row.fill(NaN);
  let gained = 0;
  let last = value[from]!;
  for (let i = from; i < to; i++) {
    const now = value[i]!;
    if (now > last) gained += now - last;
    if (now >= last || !returns(value, i, to, last)) last = now;
    const tick = Math.floor((timeS[i]! - startS) / stepS);
    if (tick >= 0 && tick < ticks) row[tick] = gained;
  }
}

function returns(value: Float64Array, i: number, to: number, before: number): boolean {
  for (let next = i + 1; next < to && next <= i + MOST_DIP; next++)
    if (value[next]! >= before) return true;
  return false;
}

/** A state that shows the last event for ever: 0 while it is what it was at first. */
export function newsRow(
  row: Float64Array,
  ticks: Ticks,
  timeS: Float64Array,
  value: Float64Array,
  from: number,
  to: number,
): void {
  const first = value[from]!;
  const news = value.subarray(from, to).map((one) => (one === first ? 0 : one));
  levelRow(row, ticks, timeS.subarray(from, to), news, 0, to - from);
}

/** The fastest that any series of a counter rises, over half a minute at least: one sample may be late. */
export function fastestRise(
  start: Uint32Array,
  timeS: Float64Array,
  value: Float64Array,
  leastS: number,
): number {
  let fastest = 0;
  for (let s = 0; s + 1 < start.length; s++) {
    let from = start[s]!;
    for (let i = from + 1; i < start[s + 1]!; i++) {
      if (value[i]! < value[i - 1]!) from = i;
      const passedS = timeS[i]! - timeS[from]!;
      if (passedS < leastS) continue;
      fastest = Math.max(fastest, (value[i]! - value[from]!) / passedS);
      from = i;
    }
  }
  return fastest;
}

/** Share of a tick's samples in which any of the bits is set. */
export function bitsRow(
  row: Float64Array,
  ticks: Ticks,
  timeS: Float64Array,
  value: Float64Array,
  from: number,
  to: number,
  bits: number,
): void {
  const isSet = value.subarray(from, to).map((one) => ((one & bits) === 0 ? 0 : 1));
  levelRow(row, ticks, timeS.subarray(from, to), isSet, 0, to - from);
}

/** Carries the last value over ticks without one: for totals, which do not change. */
export function carryForward(row: Float64Array): void {
  let last = row.find((value) => !Number.isNaN(value)) ?? NaN;
  for (let i = 0; i < row.length; i++) {
    if (Number.isNaN(row[i]!)) row[i] = last;
    else last = row[i]!;
  }
}
