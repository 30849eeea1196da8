/** CSV with one row an iteration, of one process or of many workers in turn. */
import { getOrInsert } from "../../base/group-by.ts";
import type { Defect, Reading } from "../../model/reading.ts";
import type { IterationSeries } from "../../model/series.ts";
import { LineSink } from "../line-sink.ts";
import { rankFromName } from "../reader.ts";
import { MAX_POINTS, SeriesColumns } from "../series-columns.ts";
import { fieldNumber, findColumns, rowFits, splitCsv } from "./csv-columns.ts";
import type { Columns } from "./csv-columns.ts";

const SAMPLE_CHARS = 80;
/** Workers that one table may tell of; numbers beyond are not believed. */
const MAX_WORKERS = 1 << 16;
/** Longer iterations are not written in seconds without saying so. */
const MOST_SECONDS = 60;
/** So many growing values are a clock, not durations. */
const CUMULATIVE_POINTS = 8;

export class CsvSink extends LineSink {
  readonly #workers = new Map<number, SeriesColumns>();
  #columns: Columns | null = null;
  #rows = 0;
  #points = 0;
  #dropped = 0;
  #bad = 0;
  #firstBad: Defect | null = null;

  finish(): Reading {
    const file = this.file;
    return {
      file,
      format: "iteration-table",
      rank: this.#columns !== null && this.#columns.rank < 0 ? rankByName(file) : null,
      records: this.#rows,
      defects: this.#defects(),
      series: this.#series(),
    };
  }

  line(text: string, no: number): void {
    if (text.trim() === "") return;
    if (no === 1 || (this.#columns === null && this.#rows === 0 && this.#bad === 0)) {
      const name = this.file.slice(this.file.lastIndexOf("/") + 1);
      this.#columns = findColumns(text, name);
      if (this.#columns === null)
        this.#reject(text, no, "is not the header of a table of iterations");
      return;
    }
    const columns = this.#columns;
    if (columns === null) return;
    const fields = splitCsv(text);
    if (fields.length !== columns.width || !rowFits(fields, columns)) {
      this.#reject(text, no, "is not a row of the table");
      return;
    }
    this.#rows++;
    this.#row(fields, columns, no);
  }

  #row(fields: readonly string[], columns: Columns, no: number): void {
    const worker = columns.rank < 0 ? 0 : fieldNumber(fields[columns.rank]);
    if (!Number.isInteger(worker) || worker < 0 || worker >= MAX_WORKERS) {
      this.#reject(fields.join(), no, "names no worker");
      return;
    }
    if (this.#points >= MAX_POINTS) {
      this.#dropped++;
      return;
    }
    this.#points++;
    const points = getOrInsert(this.#workers, worker, () => new SeriesColumns());
    const durationMs = fieldNumber(fields[columns.duration]) * columns.unitMs;
    const endMs = fieldNumber(fields[columns.wallTime]) * 1000;
    points.add(fieldNumber(fields[columns.iteration]), durationMs, endMs, no, 0);
    points.batch[points.count - 1] = fieldNumber(fields[columns.batch]);
  }

  #series(): IterationSeries[] {
    const columns = this.#columns;
    if (columns === null) return [];
    const file = this.file;
    const byRank = columns.rank >= 0;
    const workers = [...this.#workers].sort((a, b) => a[0] - b[0]);
    for (const [, points] of workers) {
      if (columns.duration < 0) fromTimes(points, points.endMs);
      else if (columns.mayBeCumulative && isClock(points)) {
        fromTimes(points, points.durationMs.slice(0, points.count));
      }
    }
    const { isRelative, areTimes } = columns;
    if (!columns.unitIsKnown && !isRelative && workers.every(([, points]) => areSeconds(points))) {
      for (const [, { durationMs, count }] of workers)
        for (let i = 0; i < count; i++) durationMs[i]! *= 1000;
    }
    return workers
      .filter(([, points]) => points.tells)
      .map(([worker, points]) => ({
        ...points.series({
          source: byRank ? `${file}, rank ${worker}` : file,
          file,
          rank: byRank ? worker : rankByName(file),
          basis: columns.duration < 0 ? "timestamps" : "reported",
        }),
        ...(isRelative ? { isRelative } : {}),
        ...(areTimes ? { areTimes } : {}),
      }));
  }

  #reject(text: string, no: number, why: string): void {
    this.#bad++;
    this.#firstBad ??= {
      file: this.file,
      line: no,
      what: `${why}: ${text.slice(0, SAMPLE_CHARS)}`,
    };
  }

  #defects(): Defect[] {
    const { file } = { file: this.file };
    const defects: Defect[] = this.#firstBad ? [this.#firstBad] : [];
    if (this.#bad > 1) defects.push({ file, what: `${this.#bad} lines are not rows of the table` });
    if (this.#dropped > 0) {
      defects.push({ file, what: `the last ${this.#dropped} rows were left out: too many` });
    }
    return defects;
  }
}

/** No iteration takes 1.25 ms, and nobody writes milliseconds to a fraction below a thousand: then it is seconds. */
function areSeconds({ durationMs, count }: SeriesColumns): boolean {
  let small = 0;
  let whole = 0;
  let all = 0;
  for (let i = 0; i < count; i++) {
    if (!(durationMs[i]! > 0)) continue;
    all++;
    if (durationMs[i]! < MOST_SECONDS) small++;
    if (Number.isInteger(durationMs[i])) whole++;
  }
  return all > 0 && small > 0.9 * all && whole < 0.5 * all;
}

/** Only a name that says so: tables are numbered for many reasons. */
function rankByName(file: string): number | null {
  const name = file.slice(file.lastIndexOf("/") + 1);
  return /rank[-_.]?\d/i.test(name) ? rankFromName(file) : null;
}

/** Durations out of the times at which the iterations ended. */
function fromTimes(points: SeriesColumns, timesMs: Float64Array): void {
  for (let at = points.count - 1; at > 0; at--) {
    const iterations = points.iteration[at]! - points.iteration[at - 1]!;
    const elapsedMs = timesMs[at]! - timesMs[at - 1]!;
    points.durationMs[at] = iterations > 0 && elapsedMs >= 0 ? elapsedMs / iterations : NaN;
  }
  points.durationMs[0] = NaN;
}

/** Whether the values only ever grow. */
function isClock({ count, durationMs }: SeriesColumns): boolean {
  if (count < CUMULATIVE_POINTS) return false;
  for (let at = 1; at < count; at++) if (!(durationMs[at]! > durationMs[at - 1]!)) return false;
  return true;
}
