/** One series' samples on their way into a builder: grows, and is used again for the next series. */
import type { MetricSetBuilder } from "./metric-set-builder.ts";

const FIRST_ROOM = 4096;
/** A series of half a year at one second: what is beyond would only fill the memory. */
const MOST = 1 << 24;

export class SampleColumns {
  timeS = new Float64Array(FIRST_ROOM);
  value = new Float64Array(FIRST_ROOM);
  times = 0;
  values = 0;

  get samples(): number {
    return Math.min(this.times, this.values);
  }

  addTime(timeS: number): void {
    if (this.times === this.timeS.length) this.timeS = grown(this.timeS);
    if (this.times < MOST) this.timeS[this.times++] = timeS;
  }

  addValue(value: number): void {
    if (this.values === this.value.length) this.value = grown(this.value);
    if (this.values < MOST) this.value[this.values++] = value;
  }

  /** Empties the columns. */
  flush(builder: MetricSetBuilder, series: number): void {
    if (series >= 0) builder.addMany(series, this.timeS, this.value, this.samples);
    this.times = this.values = 0;
  }
}

function grown(column: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  if (column.length >= MOST) return column;
  const larger = new Float64Array(column.length * 2);
  larger.set(column);
  return larger;
}
