/**
 * A series as one piece or as two, each a level or a line (one piece: or a parabola, since smooth growth is no
 * change) with first-order autoregressive noise: the cost of either, as twice the negative log likelihood plus
 * what its parameters cost. The same correlation for both pieces, tried on a grid; for a given one, sums from
 * the left give every piece in constant time (Prais and Winsten's transformation, so that a piece's first point
 * counts by its stationary variance).
 */
export interface PiecePrices {
  readonly change: number;
  readonly slope: number;
  readonly spread: number;
}

export interface BestPieces {
  readonly one: number;
  readonly two: number;
  /** First point of the second piece. */
  readonly split: number;
}

/** From none to nearly a random walk. */
const CORRELATIONS = [0, 0.4, 0.7, 0.88, 0.97] as const;
/** A piece of two points is a level; fewer are not looked at. */
const EDGE = 2;
/** Fewest points that have a spread of their own. */
const SPREAD_POINTS = 8;

export class PiecewiseFit {
  readonly #values: readonly number[];
  readonly #leastVariance: number;
  readonly #prices: PiecePrices;

  constructor(values: readonly number[], leastVariance: number, prices: PiecePrices) {
    this.#values = values;
    this.#leastVariance = leastVariance;
    this.#prices = prices;
  }

  best(): BestPieces {
    const n = this.#values.length;
    const least = this.#leastVariance;
    const piece = Math.log(n);
    const slope = this.#prices.slope * piece;
    // A price as a factor of the squares: fewer logarithms.
    const factors = Float64Array.from({ length: n + 1 }, (_, points) => Math.exp(slope / points));
    const dear = factors[n]!;
    let one = Infinity;
    let two = Infinity;
    let split = 0;
    for (const correlation of CORRELATIONS) {
      const sums = new Sums(this.#values, correlation, least);
      const first = piece - Math.log(1 - correlation * correlation);
      sums.see(0, n);
      one = Math.min(one, n * Math.log(Math.min(sums.level, sums.line * dear) / n) + first);
      let fewest = Infinity;
      let at = 0;
      for (let s = EDGE; s <= n - EDGE; s++) {
        sums.see(0, s);
        const { level, line } = sums;
        sums.see(s, n);
        const squares = Math.min(
          level + sums.level,
          Math.min(line + sums.level, level + sums.line) * dear,
          (line + sums.line) * dear * dear,
        );
        if (squares < fewest) {
          fewest = squares;
          at = s;
        }
        const m = n - s;
        if (s < SPREAD_POINTS || m < SPREAD_POINTS) continue;
        const apart =
          s * Math.log(Math.min(level, line * factors[s]!) / s) +
          m * Math.log(Math.min(sums.level, sums.line * factors[m]!) / m) +
          2 * first +
          this.#prices.change +
          this.#prices.spread;
        if (apart < two) {
          two = apart;
          split = s;
        }
      }
      const together = n * Math.log(fewest / n) + 2 * first + this.#prices.change;
      if (together < two) {
        two = together;
        split = at;
      }
    }
    // The parabola takes longest, and matters only where two pieces are about to win.
    if (two < one) one = Math.min(one, this.#curve() + 2 * slope + piece);
    return { one, two, split };
  }

  #curve(): number {
    const n = this.#values.length;
    const costs = CORRELATIONS.map((correlation) => {
      const squares = new Sums(this.#values, correlation, this.#leastVariance).curve();
      return n * Math.log(squares / n) - Math.log(1 - correlation * correlation);
    });
    return Math.min(...costs);
  }
}

/** Squares that a level and a line leave of any piece, for one correlation. */
class Sums {
  level = 0;
  line = 0;
  readonly #values: readonly number[];
  readonly #leastVariance: number;
  /** Weights of the first point and of the others' constant, after whitening. */
  readonly #first: number;
  readonly #constant: number;
  readonly #xx: Float64Array;
  readonly #x: Float64Array;
  readonly #tx: Float64Array;
  readonly #t: Float64Array;
  readonly #tt: Float64Array;

  constructor(values: readonly number[], correlation: number, leastVariance: number) {
    const n = values.length;
    this.#values = values;
    this.#leastVariance = leastVariance;
    this.#first = 1 - correlation * correlation;
    this.#constant = 1 - correlation;
    const [xx, x, tx, t, tt] = Array.from({ length: 5 }, () => new Float64Array(n + 1));
    // Differences from the first value: an offset far larger than the noise must not eat the digits.
    const origin = values[0]!;
    for (let i = 1; i < n; i++) {
      const whitened = values[i]! - origin - correlation * (values[i - 1]! - origin);
      const time = i - correlation * (i - 1);
      xx![i + 1] = xx![i]! + whitened * whitened;
      x![i + 1] = x![i]! + whitened;
      tx![i + 1] = tx![i]! + time * whitened;
      t![i + 1] = t![i]! + time;
      tt![i + 1] = tt![i]! + time * time;
    }
    this.#xx = xx!;
    this.#x = x!;
    this.#tx = tx!;
    this.#t = t!;
    this.#tt = tt!;
  }

  /** Fits values[from..to): `level` and `line` are the squares left, rounding included. */
  see(from: number, to: number): void {
    const weight = this.#first;
    const constant = this.#constant;
    const value = this.#values[from]! - this.#values[0]!;
    const after = from + 1;
    const norm = constant * constant * (to - after) + weight;
    const x = constant * (this.#x[to]! - this.#x[after]!) + weight * value;
    const t = constant * (this.#t[to]! - this.#t[after]!) + weight * from;
    const xx = this.#xx[to]! - this.#xx[after]! + weight * value * value;
    const tx = this.#tx[to]! - this.#tx[after]! + weight * from * value;
    const tt = this.#tt[to]! - this.#tt[after]! + weight * from * from;
    const left = Math.max(0, xx - (x * x) / norm);
    const spreadOfTime = tt - (t * t) / norm;
    const along = tx - (t * x) / norm;
    const explained = spreadOfTime > 1e-9 ? (along * along) / spreadOfTime : 0;
    const rounding = (to - from) * this.#leastVariance;
    this.level = left + rounding;
    this.line = Math.max(0, left - explained) + rounding;
  }

  /** The squares that a parabola leaves of the whole. */
  curve(): number {
    const n = this.#values.length;
    const origin = this.#values[0]!;
    const correlation = 1 - this.#constant;
    // Orthogonal to a level and a line once whitened: by Gram and Schmidt.
    const basis: Float64Array[] = [];
    const left = this.#whitened((i) => this.#values[i]! - origin, correlation);
    for (const power of [0, 1, 2]) {
      const column = this.#whitened((i) => ((2 * i) / n - 1) ** power, correlation);
      for (const other of basis) takeAway(column, other);
      basis.push(column);
      takeAway(left, column);
    }
    return dot(left, left) + n * this.#leastVariance;
  }

  #whitened(at: (i: number) => number, correlation: number): Float64Array {
    return Float64Array.from({ length: this.#values.length }, (_, i) =>
      i === 0 ? Math.sqrt(this.#first) * at(0) : at(i) - correlation * at(i - 1),
    );
  }
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function takeAway(from: Float64Array, what: Float64Array): void {
  const share = dot(from, what) / dot(what, what);
  for (let i = 0; i < from.length; i++) from[i]! -= share * what[i]!;
}
