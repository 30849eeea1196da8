/** One series' samples on their way into a builder: grows, and is used again for the next series. */
import { grown } from "../grown.ts";
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
    if (this.times === MOST) return;
    this.timeS = grown(this.timeS, this.times + 1);
    this.timeS[this.times++] = timeS;
  }

  addValue(value: number): void {
    if (this.values === MOST) return;
    this.value = grown(this.value, this.values + 1);
    this.value[this.values++] = value;
  }

  /** Empties the columns. */
  flush(builder: MetricSetBuilder, series: number): void {
    if (series >= 0) builder.addMany(series, this.timeS, this.value, this.samples);
    this.times = this.values = 0;
  }
}
