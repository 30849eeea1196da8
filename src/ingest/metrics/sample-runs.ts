/**
 * Samples in the order in which they come, as runs of one series: a server gives a series at a time, a log all series
 * at every time. Either way each sample is copied once more, to its place.
 */
import { grown } from "../grown.ts";

const BLOCK = 1 << 16;
/** From here on the engine's own copying is faster than a loop. */
const LONG_RUN = 48;

/** Where series' samples go to: `at` moves on as they are copied. */
export interface Place {
  readonly timeS: Float64Array;
  readonly value: Float64Array;
  at: number;
}

export class SampleRuns {
  /** Blocks of equal length; the last is filled up to #used. A run lies in one block. */
  #timeS: Float64Array[] = [];
  #value: Float64Array[] = [];
  #used = BLOCK;
  #runSeries = new Int32Array(1024);
  #runLength = new Int32Array(1024);
  #runs = 0;

  add(series: number, timeS: number, value: number): void {
    this.#room(series);
    const block = this.#timeS.length - 1;
    this.#timeS[block]![this.#used] = timeS;
    this.#value[block]![this.#used++] = value;
    this.#runLength[this.#runs - 1]!++;
  }

  addMany(
    series: number,
    timeS: Float64Array,
    value: Float64Array,
    from: number,
    to: number,
  ): void {
    for (let at = from; at < to;) {
      this.#room(series);
      const count = Math.min(to - at, BLOCK - this.#used);
      const block = this.#timeS.length - 1;
      this.#timeS[block]!.set(timeS.subarray(at, at + count), this.#used);
      this.#value[block]!.set(value.subarray(at, at + count), this.#used);
      this.#used += count;
      this.#runLength[this.#runs - 1]! += count;
      at += count;
    }
  }

  /** Makes sure that the last run is the series' and that there is room for a sample. */
  #room(series: number): void {
    if (this.#used === BLOCK) {
      this.#timeS.push(new Float64Array(BLOCK));
      this.#value.push(new Float64Array(BLOCK));
      this.#used = 0;
    } else if (this.#runSeries[this.#runs - 1] === series) return;
    this.#runSeries = grown(this.#runSeries, this.#runs + 1);
    this.#runLength = grown(this.#runLength, this.#runs + 1);
    this.#runSeries[this.#runs] = series;
    this.#runLength[this.#runs++] = 0;
  }

  /** Copies all to their places, by series (null: nowhere), and empties the store. */
  moveTo(places: readonly (Place | null)[]): void {
    let block = 0;
    let from = 0;
    for (let run = 0; run < this.#runs; run++) {
      const length = this.#runLength[run]!;
      if (from === BLOCK) {
        // Freed at once: the samples are held twice as it is.
        this.#timeS[block] = this.#value[block] = undefined as never;
        block++;
        from = 0;
      }
      const place = places[this.#runSeries[run]!];
      if (place) copy(this.#timeS[block]!, this.#value[block]!, from, length, place);
      from += length;
    }
    this.#timeS = [];
    this.#value = [];
    this.#used = BLOCK;
    this.#runs = 0;
  }
}

function copy(
  timeS: Float64Array,
  value: Float64Array,
  from: number,
  length: number,
  place: Place,
): void {
  let { at } = place;
  if (length >= LONG_RUN) {
    place.timeS.set(timeS.subarray(from, from + length), at);
    place.value.set(value.subarray(from, from + length), at);
    at += length;
  } else {
    for (let i = from; i < from + length; i++) {
      place.timeS[at] = timeS[i]!;
      place.value[at++] = value[i]!;
    }
  }
  place.at = at;
}
