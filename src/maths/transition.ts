/**
 * How a series went from one level to another: at once (a step), or along a line (a ramp). One model for both,
 * a level, a line, a level, by least squares: a step is the line of length one, and a ramp that began with the series or
 * still goes on lacks a level. All values are logarithms, so that a line is a rate.
 */
import { median, spread } from "./robust.ts";

export interface Transition {
  /** Position of the first value that left the old level, and of the first of the new one (the length: none yet). */
  readonly start: number;
  readonly end: number;
  readonly before: number;
  readonly after: number;
  /** Deviation of single values from all that. */
  readonly noise: number;
  readonly isRamp: boolean;
}

/** A running median over so many values forgets bursts of three and keeps steps and lines (spikes last up to three points). */
const WIDTH = 7;
const HALF = (WIDTH - 1) / 2;
/** A rise over no more points is a step that began in the middle of one (level-tracker.ts, NEARBY). */
const AT_ONCE = 20;
/** Places of a ramp that are tried on either side: finer makes no difference that noise leaves. */
const PLACES = 64;

/** `least` is the smallest deviation that any fit can have: clocks and rounding. */
export function transitionOf(raw: readonly number[], least: number): Transition {
  const values = runningMedian(raw);
  const fit = new Fit(values);
  const n = values.length;
  const stride = Math.max(1, Math.floor(n / PLACES));
  const starts = range(stride, n - AT_ONCE, stride);
  const ends = range(AT_ONCE, n - 1, stride);
  // Schwarz's criterion, for as many values as the running median leaves independent of each other.
  const independent = n / WIDTH;
  const cost = ({ squares }: Fitted, places: number): number =>
    independent * Math.log(squares / n + least * least) + places * Math.log(independent);
  // A ramp with a level on both ends, on one, on none: each end is a place more to pay for.
  const ramps = [
    { places: 0, fitted: fit.best([0], () => [n]) },
    { places: 1, fitted: fit.best([0], () => ends.filter((end) => end > AT_ONCE)) },
    { places: 1, fitted: fit.best(starts, () => [n]) },
    { places: 2, fitted: fit.best(starts, (start) => ends.filter((end) => end - start > AT_ONCE)) },
  ];
  const ramp = ramps.reduce((a, b) =>
    cost(b.fitted, b.places) < cost(a.fitted, a.places) ? b : a,
  ).fitted;
  const step = fit.best(range(1, n - 1, 1), (start) => [start + 1]);
  const isRamp = cost(ramp, 1) < cost(step, 0);
  const at = isRamp ? ramp : step;
  // A slope that is fitted to two steps ends beyond what was seen: that is no level.
  const [before, after] = within(values, [at.before, at.after]);
  // Back to places among all values; a ramp from the first or to the last that is known reaches the ends.
  const start = at.start === 0 ? 0 : at.start + HALF;
  const end = at.end === n ? raw.length : at.end + HALF;
  const along = (i: number): number => Math.min(1, Math.max(0, (i - start + 1) / (end - start)));
  const left = raw.map((y, i) => y - before - (after - before) * along(i));
  return { start, end, before, after, noise: Math.max(least, spread(left, 0)), isRamp };
}

function within(values: readonly number[], levels: readonly [number, number]): [number, number] {
  let [least, most] = [Infinity, -Infinity];
  for (const y of values) {
    if (y < least) least = y;
    if (y > most) most = y;
  }
  const [before, after] = levels.map((y) => Math.min(most, Math.max(least, y)));
  return [before!, after!];
}

/** Whole windows only: the first and the last few values have none. */
function runningMedian(raw: readonly number[]): number[] {
  return raw.slice(WIDTH - 1).map((_, i) => median(raw.slice(i, i + WIDTH)));
}

function range(from: number, to: number, stride: number): number[] {
  const found: number[] = [];
  for (let i = from; i <= to; i += stride) found.push(i);
  return found;
}

interface Fitted {
  readonly start: number;
  readonly end: number;
  readonly before: number;
  readonly after: number;
  readonly squares: number;
}

/** Sums from the left give every fit in constant time. */
class Fit {
  readonly #n: number;
  /** Of y, of i y; y is taken from the first value, so that digits are kept. */
  readonly #y: Float64Array;
  readonly #iy: Float64Array;
  readonly #origin: number;
  #squares = 0;

  constructor(values: readonly number[]) {
    const n = (this.#n = values.length);
    this.#y = new Float64Array(n + 1);
    this.#iy = new Float64Array(n + 1);
    this.#origin = values[0] ?? NaN;
    for (let i = 0; i < n; i++) {
      const y = values[i]! - this.#origin;
      this.#y[i + 1] = this.#y[i]! + y;
      this.#iy[i + 1] = this.#iy[i]! + i * y;
      this.#squares += y * y;
    }
  }

  best(starts: readonly number[], endsOf: (start: number) => readonly number[]): Fitted {
    let best: Fitted = { start: 0, end: 0, before: NaN, after: NaN, squares: Infinity };
    for (const start of starts)
      for (const end of endsOf(start)) {
        const fitted = this.#at(start, end);
        if (fitted.squares < best.squares) best = fitted;
      }
    return best;
  }

  /** y = before + (after - before) w, where w grows from 1 / length at `start` to 1 at `end` - 1 and stays there. */
  #at(start: number, end: number): Fitted {
    const n = this.#n;
    const y = this.#y;
    const length = end - start;
    const w = (length + 1) / 2 + n - end;
    const ww = ((length + 1) * (2 * length + 1)) / (6 * length) + n - end;
    const along = this.#iy[end]! - this.#iy[start]! + (1 - start) * (y[end]! - y[start]!);
    const wy = along / length + y[n]! - y[end]!;
    const shared = wy - (w * y[n]!) / n;
    const rise = shared / (ww - (w * w) / n);
    const before = (y[n]! - rise * w) / n;
    const squares = Math.max(0, this.#squares - (y[n]! * y[n]!) / n - rise * shared);
    const level = this.#origin + before;
    return { start, end, before: level, after: level + rise, squares };
  }
}
