/** The columns of an iteration series while it is read: typed arrays that double, no object a point. */
import type { IterationSeries } from "../model/series.ts";
import { grown } from "./grown.ts";

/** A file may tell of fifty thousand writers with a handful of points each. */
const FIRST_CAPACITY = 16;
/** Points of one file, all its series together; what comes after is counted, not kept. */
export const MAX_POINTS = 1_000_000;

type SeriesIdentity = Pick<IterationSeries, "source" | "file" | "rank" | "basis">;

export class SeriesColumns {
  count = 0;
  iteration = new Float64Array(FIRST_CAPACITY);
  durationMs = new Float64Array(FIRST_CAPACITY);
  endMs = new Float64Array(FIRST_CAPACITY);
  batch = new Float64Array(FIRST_CAPACITY);
  /** Samples or tokens a second, NaN where the line does not say: of no use to a reader of the series. */
  rate = new Float64Array(FIRST_CAPACITY);
  line = new Int32Array(FIRST_CAPACITY);
  between = new Uint8Array(FIRST_CAPACITY);

  add(iteration: number, durationMs: number, endMs: number, line: number, between: number): void {
    const at = this.count++;
    if (at === this.iteration.length) this.#grow();
    this.iteration[at] = iteration;
    this.durationMs[at] = durationMs;
    this.endMs[at] = endMs;
    this.line[at] = line;
    this.between[at] = between;
    this.batch[at] = NaN;
    this.rate[at] = NaN;
  }

  /** Puts a point into the place of an earlier one. */
  move(from: number, to: number): void {
    const { iteration, durationMs, endMs, batch, rate, line, between } = this;
    for (const column of [iteration, durationMs, endMs, batch, rate, line, between])
      column[to] = column[from]!;
  }

  /** Whether any point says how long an iteration took. */
  get tells(): boolean {
    for (let at = 0; at < this.count; at++) if (this.durationMs[at]! >= 0) return true;
    return false;
  }

  /** Copies of the right length: they may be handed to another thread. */
  series(is: SeriesIdentity): IterationSeries {
    const { count } = this;
    return {
      ...is,
      iteration: this.iteration.slice(0, count),
      durationMs: this.durationMs.slice(0, count),
      endMs: this.endMs.slice(0, count),
      line: this.line.slice(0, count),
      batch: this.batch.slice(0, count),
      between: this.between.slice(0, count),
    };
  }

  #grow(): void {
    const size = this.count;
    this.iteration = grown(this.iteration, size);
    this.durationMs = grown(this.durationMs, size);
    this.endMs = grown(this.endMs, size);
    this.batch = grown(this.batch, size);
    this.rate = grown(this.rate, size);
    this.line = grown(this.line, size);
    this.between = grown(this.between, size);
  }
}
