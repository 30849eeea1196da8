/**
 * VictoriaMetrics' export (/api/v1/export): one JSON object a line with a series' labels, values and times in
 * milliseconds. A line that is broken is passed over and counted.
 */
import { LineSplitter } from "../../base/lines.ts";
import { fieldsOf, parseFields } from "../../base/json.ts";
import type { LabelledSeries } from "./labelled-series.ts";
import { SampleColumns } from "./sample-columns.ts";

interface ExportLine {
  readonly metric?: unknown;
  readonly values?: unknown;
  readonly timestamps?: unknown;
}

export interface ExportSummary {
  /** Lines that are no export, or have more values than times or the other way round. */
  readonly badLines: number;
  /** Whether the last line has its end. */
  readonly isWhole: boolean;
}

const NEWLINE = 10;
/** A month of a series at one second has half of it. */
const MOST_LINE_BYTES = 1 << 27;

export class ExportLineScanner {
  readonly #series: LabelledSeries;
  readonly #lines = new LineSplitter((line) => this.#line(line), MOST_LINE_BYTES);
  readonly #columns = new SampleColumns();
  #badLines = 0;
  #isLastCut = false;
  #lastByte = NEWLINE;

  constructor(series: LabelledSeries) {
    this.#series = series;
  }

  push(chunk: Uint8Array): void {
    this.#lines.push(chunk);
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
  }

  end(): ExportSummary {
    this.#lines.end();
    return {
      badLines: this.#badLines,
      isWhole: this.#lastByte === NEWLINE || !this.#isLastCut,
    };
  }

  #line(line: string): void {
    if (line.trim() === "") return;
    const fields = parseFields(line);
    const { metric, values, timestamps }: ExportLine = fields ?? {};
    this.#isLastCut = fields === null;
    let isBad = true;
    if (fieldsOf(metric) && Array.isArray(values) && Array.isArray(timestamps)) {
      const id = this.#series.ofJson(JSON.stringify(metric)) ?? -1;
      // Null and, of newer versions, "Infinity" and "NaN".
      for (const value of values) this.#columns.addValue(value === null ? NaN : Number(value));
      for (const ms of timestamps) this.#columns.addTime(Number(ms) / 1000);
      this.#columns.flush(this.#series.builder, id);
      isBad = values.length !== timestamps.length;
    }
    if (isBad) this.#badLines++;
  }
}
