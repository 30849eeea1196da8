/**
 * Where the iterations of a rank lie among its records: number, times, first and behind-last ticket. Typed arrays of a
 * bounded size, the oldest overwritten; an iteration that came twice (a job that went back to a checkpoint) is its latest.
 */
const FIRST_ENTRIES = 256;
const MOST_ENTRIES = 4096;

export interface IndexedIteration {
  readonly iteration: number;
  /** Monotonic nanoseconds. */
  readonly startNs: number;
  readonly endNs: number;
  readonly first: number;
  readonly behind: number;
  /** Whether no record at its borders was lost, so that the tickets between them are all of it. */
  readonly isSure: boolean;
}

export class IterationIndex {
  #iteration = new Float64Array(FIRST_ENTRIES);
  #startNs = new Float64Array(FIRST_ENTRIES);
  #endNs = new Float64Array(FIRST_ENTRIES);
  #first = new Float64Array(FIRST_ENTRIES);
  #behind = new Float64Array(FIRST_ENTRIES);
  #isSure = new Uint8Array(FIRST_ENTRIES);
  readonly #placeOf = new Map<number, number>();
  #count = 0;

  add(one: IndexedIteration): void {
    const entries = this.#iteration.length;
    if (this.#count === entries && entries < MOST_ENTRIES) this.#grow(entries * 2);
    const place = this.#count++ % this.#iteration.length;
    const before = this.#iteration[place]!;
    if (this.#count > this.#iteration.length && this.#placeOf.get(before) === place)
      this.#placeOf.delete(before);
    this.#iteration[place] = one.iteration;
    this.#startNs[place] = one.startNs;
    this.#endNs[place] = one.endNs;
    this.#first[place] = one.first;
    this.#behind[place] = one.behind;
    this.#isSure[place] = one.isSure ? 1 : 0;
    // Deleted first, so that the map's order is that of the iterations' ends.
    this.#placeOf.delete(one.iteration);
    this.#placeOf.set(one.iteration, place);
  }

  /** Records between its borders turned out to be lost. */
  spoil(iteration: number): void {
    const place = this.#placeOf.get(iteration);
    if (place !== undefined) this.#isSure[place] = 0;
  }

  get(iteration: number): IndexedIteration | null {
    const place = this.#placeOf.get(iteration);
    if (place === undefined) return null;
    return {
      iteration,
      startNs: this.#startNs[place]!,
      endNs: this.#endNs[place]!,
      first: this.#first[place]!,
      behind: this.#behind[place]!,
      isSure: this.#isSure[place] === 1,
    };
  }

  /** Numbers in the order in which the iterations ended. */
  get numbers(): number[] {
    return [...this.#placeOf.keys()];
  }

  #grow(entries: number): void {
    const longer = (column: Float64Array): Float64Array<ArrayBuffer> => {
      const copy = new Float64Array(entries);
      copy.set(column);
      return copy;
    };
    this.#iteration = longer(this.#iteration);
    this.#startNs = longer(this.#startNs);
    this.#endNs = longer(this.#endNs);
    this.#first = longer(this.#first);
    this.#behind = longer(this.#behind);
    const isSure = new Uint8Array(entries);
    isSure.set(this.#isSure);
    this.#isSure = isSure;
  }
}
