import { median } from "./robust.ts";

/** A level from its first point to its last in bounded memory: when it gets long, three neighbours become their median. */
export class Trail {
  values: number[] = [];
  /** Points a value. */
  stride = 1;
  /** Index of the first point of each value. */
  #indices: number[] = [];
  /** Points of the next value, not enough yet. */
  #next: number[] = [];
  readonly #most: number;

  /** A multiple of three. */
  constructor(most: number) {
    this.#most = most;
  }

  indexOf(at: number): number {
    return this.#indices[at]!;
  }

  push(index: number, value: number): void {
    if (this.#next.length === 0) this.#indices.push(index);
    this.#next.push(value);
    if (this.#next.length < this.stride) return;
    this.values.push(median(this.#next));
    this.#next = [];
    if (this.values.length < this.#most) return;
    const { values } = this;
    const isFirst = (_: number, i: number): boolean => i % 3 === 0;
    this.#indices = this.#indices.filter(isFirst);
    this.values = values.filter(isFirst).map((_, i) => median(values.slice(3 * i, 3 * i + 3)));
    this.stride *= 3;
  }
}
