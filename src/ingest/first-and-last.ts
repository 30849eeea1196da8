/**
 * A list that keeps its first and its last entries and counts the rest. A log that repeats one complaint a
 * million times must not fill the memory; where it began and how it ended is what tells.
 */
export class FirstAndLast<T> {
  readonly #half: number;
  readonly #first: T[] = [];
  #last: T[] = [];
  #seen = 0;

  constructor(capacity = 2000) {
    this.#half = Math.max(1, capacity >> 1);
  }

  add(entry: T): void {
    this.#seen++;
    if (this.#first.length < this.#half) {
      this.#first.push(entry);
      return;
    }
    this.#last.push(entry);
    // Trimmed in strides, so that a flood costs one copy in `half` entries.
    if (this.#last.length >= 2 * this.#half) this.#last = this.#last.slice(-this.#half);
  }

  /** In the order in which they came. */
  get entries(): readonly T[] {
    return [...this.#first, ...this.#last.slice(-this.#half)];
  }

  get dropped(): number {
    return Math.max(0, this.#seen - 2 * this.#half);
  }
}
