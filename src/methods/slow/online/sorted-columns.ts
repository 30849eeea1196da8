/**
 * The last values of many series, each kept sorted: a new value costs one insertion and not a sort, and medians cost nothing.
 * NaN is no value.
 */
import { TO_DEVIATION } from "../../../maths/robust.ts";

/** So many are looked through one by one sooner than by halves. */
const FEW = 8;

export class SortedColumns {
  readonly #values: Float32Array;
  readonly #known: Uint16Array;
  readonly #capacity: number;

  constructor(series: number, capacity: number) {
    this.#values = new Float32Array(series * capacity);
    this.#known = new Uint16Array(series);
    this.#capacity = capacity;
  }

  get series(): number {
    return this.#known.length;
  }

  /** How many values the series has. */
  known(s: number): number {
    return this.#known[s]!;
  }

  clear(): void {
    this.#known.fill(0);
  }

  /** Of each series one value goes, and one comes; either may be missing. */
  move(gone: Float32Array | null, come: Float32Array | null): void {
    const { length } = this.#known;
    for (let s = 0; s < length; s++) {
      const goes = gone === null ? NaN : gone[s]!;
      const comes = come === null ? NaN : come[s]!;
      const isGone = !Number.isNaN(goes);
      if (Number.isNaN(comes)) {
        if (!isGone) continue;
        this.#slide(s, this.#find(s, goes), Infinity);
        this.#known[s]!--;
      } else if (isGone) this.#slide(s, this.#find(s, goes), comes);
      else this.#slide(s, s * this.#capacity + this.#known[s]!++, comes);
    }
  }

  /** Value number i, counting from the smallest. */
  at(s: number, i: number): number {
    return this.#values[s * this.#capacity + i]!;
  }

  /** NaN of none. */
  median(s: number): number {
    const known = this.#known[s]!;
    if (known === 0) return NaN;
    const at = s * this.#capacity + (known >> 1);
    return known % 2 === 1 ? this.#values[at]! : (this.#values[at - 1]! + this.#values[at]!) / 2;
  }

  /** Standard deviation by the median distance from a level: distances grow to both sides of it, so that they are merged, not sorted. */
  deviation(s: number, level: number): number {
    const known = this.#known[s]!;
    const from = s * this.#capacity;
    let right = from + (known >> 1);
    let left = right - 1;
    let last = 0;
    let before = 0;
    for (let taken = 0; taken <= known >> 1; taken++) {
      const below = left >= from ? level - this.#values[left]! : Infinity;
      const above = right < from + known ? this.#values[right]! - level : Infinity;
      before = last;
      last = Math.min(below, above);
      if (below < above) left--;
      else right++;
    }
    if (known === 0) return 0;
    return TO_DEVIATION * (known % 2 === 1 ? last : (before + last) / 2);
  }

  /** Where a value lies that is there. */
  #find(s: number, value: number): number {
    const values = this.#values;
    let low = s * this.#capacity;
    let high = low + this.#known[s]!;
    while (high - low > FEW) {
      const middle = (low + high) >> 1;
      if (values[middle]! < value) low = middle + 1;
      else high = middle;
    }
    while (values[low]! < value) low++;
    return low;
  }

  /** Puts a value in order, in place of the one at the gap: those between make room. */
  #slide(s: number, gap: number, value: number): void {
    const values = this.#values;
    const first = s * this.#capacity;
    const last = first + this.#known[s]! - 1;
    let at = gap;
    for (; at < last && values[at + 1]! < value; at++) values[at] = values[at + 1]!;
    for (; at > first && values[at - 1]! > value; at--) values[at] = values[at - 1]!;
    values[at] = value;
  }
}
