/**
 * VictoriaMetrics' export (/api/v1/export): one JSON object a line with a series' labels, values and times in
 * milliseconds. Lines may be of any length, so they are scanned as their bytes come. A line that is broken is passed
 * over and counted.
 */
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  nestedEnd,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  SPACE,
  stringEnd,
  ValueSkipper,
} from "../kineto/json-bytes.ts";
import { DecimalReader } from "./decimal-reader.ts";
import type { LabelledSeries } from "./labelled-series.ts";
import { SampleColumns } from "./sample-columns.ts";

export interface ExportSummary {
  readonly lines: number;
  /** As given, wanted or not. */
  readonly samples: number;
  /** Lines that are no export, or have more values than times or the other way round. */
  readonly badLines: number;
  /** Whether the last line has its end. */
  readonly isWhole: boolean;
}

type State = "between" | "line" | "values" | "timestamps" | "skip" | "broken";

const NEWLINE = 10;
/** Longer label sets are nobody's: a bound for what is carried from chunk to chunk. */
const MOST_CARRIED = 1 << 22;

export class ExportLineScanner {
  readonly #series: LabelledSeries;
  readonly #number = new DecimalReader();
  readonly #columns = new SampleColumns();
  #skipper = new ValueSkipper();
  #state: State = "between";
  #carry: Uint8Array = new Uint8Array(0);
  #at = 0;
  #id: number | null = null;
  #lines = 0;
  #badLines = 0;
  #samples = 0;

  constructor(series: LabelledSeries) {
    this.#series = series;
  }

  push(chunk: Uint8Array): void {
    const bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk]);
    this.#at = 0;
    while (this.#step(bytes, bytes.length));
    // A copy: the caller may use its chunk again.
    this.#carry = Uint8Array.from(bytes.subarray(this.#at));
    if (this.#carry.length > MOST_CARRIED) this.#break();
  }

  end(): ExportSummary {
    const isWhole = this.#state === "between";
    if (this.#state !== "between" && this.#state !== "broken") this.#badLines++;
    this.#state = "between";
    return { lines: this.#lines, samples: this.#samples, badLines: this.#badLines, isWhole };
  }

  /** Whether there may be more in these bytes. */
  #step(bytes: Uint8Array, end: number): boolean {
    if (this.#state === "values" || this.#state === "timestamps") return this.#column(bytes, end);
    if (this.#state === "broken") return this.#nextLine(bytes, end);
    if (this.#state === "skip") {
      const behind = this.#skipper.skip(bytes, this.#at, end);
      if (behind >= 0) return this.#go(behind, "line");
      this.#at = end;
      return false;
    }
    let at = skipSpace(bytes, this.#at, end);
    if (at < end && this.#state === "line" && bytes[at] === COMMA) {
      at = skipSpace(bytes, at + 1, end);
    }
    this.#at = at;
    if (at >= end) return false;
    const byte = bytes[at]!;
    if (this.#state === "between") {
      this.#lines++;
      return byte === OPEN_BRACE ? this.#go(at + 1, "line") : this.#break();
    }
    if (byte === CLOSE_BRACE) return this.#close(at + 1);
    return byte === QUOTE ? this.#key(bytes, at, end) : this.#break();
  }

  #close(at: number): boolean {
    const columns = this.#columns;
    if (this.#id === null || columns.times !== columns.values) this.#badLines++;
    this.#samples += columns.samples;
    columns.flush(this.#series.builder, this.#id ?? -1);
    this.#id = null;
    return this.#go(at, "between");
  }

  #key(bytes: Uint8Array, at: number, end: number): boolean {
    const close = stringEnd(bytes, at + 1, end);
    if (close < 0) return false;
    const colon = skipSpace(bytes, close + 1, end);
    if (colon >= end) return false;
    if (bytes[colon] !== COLON) return this.#break();
    const value = skipSpace(bytes, colon + 1, end);
    if (value >= end) return false;
    const key = textOf(bytes, at + 1, close);
    const first = bytes[value]!;
    if ((key === "values" || key === "timestamps") && first === OPEN_BRACKET) {
      return this.#go(value + 1, key);
    }
    if (key !== "metric" || first !== OPEN_BRACE) {
      this.#skipper = new ValueSkipper();
      return this.#go(value, "skip");
    }
    const behind = nestedEnd(bytes, value, end);
    if (behind < 0) return false;
    this.#id = this.#series.ofJson(textOf(bytes, value, behind));
    return this.#id === null ? this.#break() : this.#go(behind, "line");
  }

  /** The hot loop: numbers; also null and, of newer versions, "Infinity" and "NaN" in quotes. */
  #column(bytes: Uint8Array, end: number): boolean {
    const number = this.#number;
    const isTime = this.#state === "timestamps";
    let at = this.#at;
    for (;;) {
      while (at < end && (bytes[at] === COMMA || bytes[at]! <= SPACE || bytes[at] === QUOTE)) at++;
      this.#at = at;
      if (at >= end) return false;
      if (bytes[at] === CLOSE_BRACKET) return this.#go(at + 1, "line");
      at = number.read(bytes, at, end);
      if (at < 0) return at === -1 ? false : this.#break();
      if (isTime) this.#columns.addTime(number.value / 1000);
      else this.#columns.addValue(number.value);
    }
  }

  #go(at: number, state: State): boolean {
    this.#at = at;
    this.#state = state;
    return true;
  }

  #break(): boolean {
    this.#badLines++;
    this.#columns.flush(this.#series.builder, -1);
    this.#id = null;
    return this.#go(this.#at, "broken");
  }

  #nextLine(bytes: Uint8Array, end: number): boolean {
    const newline = bytes.indexOf(NEWLINE, this.#at);
    if (newline >= 0) return this.#go(newline + 1, "between");
    this.#at = end;
    return false;
  }
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("utf8");
}
