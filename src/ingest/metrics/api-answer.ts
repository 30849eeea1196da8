/**
 * Answers of Prometheus' query API (a matrix or vector of query and query_range), scanned as their bytes come: the
 * samples never become objects. Also reads what `promtool query` prints (the list of series alone) and several
 * answers one after the other, as a loop around curl leaves them.
 */
import { jsonOf } from "../../base/json.ts";
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
  valueEnd,
  ValueSkipper,
} from "../kineto/json-bytes.ts";
import { DecimalReader } from "./decimal-reader.ts";
import type { LabelledSeries } from "./labelled-series.ts";
import { SampleColumns } from "./sample-columns.ts";

export interface AnswerSummary {
  /** Whether it was read to its end. */
  readonly isWhole: boolean;
  /** The server's words, where it says that it failed. */
  readonly error: string | null;
  readonly warnings: readonly string[];
  /** The server says that some of its stores did not answer. */
  readonly isPartial: boolean;
  /** Where it stops being an answer of this API: a sentence's end ("is no … at byte 17"). */
  readonly defect: string | null;
}

type State = "between" | "object" | "result" | "series" | "values" | "skip" | "broken";

/** Longer label sets, errors and warnings are nobody's: a bound for what is carried from chunk to chunk. */
const MOST_CARRIED = 1 << 22;

export class ApiAnswerScanner {
  readonly #series: LabelledSeries;
  readonly #fromS: number;
  readonly #number = new DecimalReader();
  readonly #columns = new SampleColumns();
  #skipper = new ValueSkipper();
  #state: State = "between";
  /** Where a skipped value ends. */
  #after: State = "object";
  /** Objects around us: the answer, its data. */
  #depth = 0;
  #carry: Uint8Array = new Uint8Array(0);
  #at = 0;
  /** Bytes of the chunks before this one, less what was carried. */
  #before = 0;
  #id: number | null = null;
  #answers = 0;
  #error: string | null = null;
  #isPartial = false;
  #defect: string | null = null;
  readonly #warnings: string[] = [];

  /** `fromS`: samples before are left out. */
  constructor(series: LabelledSeries, fromS = -Infinity) {
    this.#series = series;
    this.#fromS = fromS;
  }

  push(chunk: Uint8Array): void {
    if (this.#state === "broken") return;
    const bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk]);
    this.#at = 0;
    while (this.#step(bytes, bytes.length));
    this.#before += this.#at;
    // A copy: the caller may use its chunk again.
    this.#carry = Uint8Array.from(bytes.subarray(this.#at));
    if (this.#carry.length > MOST_CARRIED) this.#break();
  }

  end(): AnswerSummary {
    const isWhole = this.#state === "between" && this.#answers > 0;
    // What was read of a series that the end cuts is as good as the rest.
    if (this.#id !== null) this.#columns.flush(this.#series.builder, this.#id);
    this.#id = null;
    return {
      isWhole,
      error: this.#error,
      warnings: this.#warnings,
      isPartial: this.#isPartial,
      defect: this.#defect,
    };
  }

  /** Whether there may be more in these bytes. */
  #step(bytes: Uint8Array, end: number): boolean {
    if (this.#state === "values") return this.#values(bytes, end);
    if (this.#state === "skip") return this.#skip(bytes, end);
    if (this.#state === "broken") return false;
    let at = skipSpace(bytes, this.#at, end);
    if (at < end && bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
    this.#at = at;
    if (at >= end) return false;
    const byte = bytes[at]!;
    if (this.#state === "between") return this.#open(byte);
    if (this.#state === "result") {
      if (byte === CLOSE_BRACKET) return this.#go(at + 1, this.#depth === 0 ? "between" : "object");
      if (byte === OPEN_BRACE) return this.#go(at + 1, "series");
      return this.#break();
    }
    if (byte === CLOSE_BRACE) return this.#close(at + 1);
    return byte === QUOTE ? this.#key(bytes, at, end) : this.#break();
  }

  #open(byte: number): boolean {
    this.#answers++;
    if (byte === OPEN_BRACE) {
      this.#depth = 1;
      return this.#go(this.#at + 1, "object");
    }
    this.#depth = 0;
    return byte === OPEN_BRACKET ? this.#go(this.#at + 1, "result") : this.#break();
  }

  #close(at: number): boolean {
    if (this.#state === "series") {
      this.#columns.flush(this.#series.builder, this.#id ?? -1);
      this.#id = null;
      return this.#go(at, "result");
    }
    return this.#go(at, --this.#depth === 0 ? "between" : "object");
  }

  #key(bytes: Uint8Array, at: number, end: number): boolean {
    const close = stringEnd(bytes, at + 1, end);
    if (close < 0) return false;
    const colon = skipSpace(bytes, close + 1, end);
    if (colon >= end) return false;
    if (bytes[colon] !== COLON) return this.#break();
    const value = skipSpace(bytes, colon + 1, end);
    if (value >= end) return false;
    const key = Buffer.from(bytes.buffer, bytes.byteOffset + at + 1, close - at - 1).toString();
    return this.#state === "series"
      ? this.#seriesKey(key, bytes, value, end)
      : this.#objectKey(key, bytes, value, end);
  }

  #objectKey(key: string, bytes: Uint8Array, value: number, end: number): boolean {
    const first = bytes[value]!;
    if (key === "data" && first === OPEN_BRACE) {
      this.#depth++;
      return this.#go(value + 1, "object");
    }
    if (key === "result" && first === OPEN_BRACKET) return this.#go(value + 1, "result");
    if (key !== "error" && key !== "warnings" && key !== "isPartial") return this.#pass(value);
    const behind = valueEnd(bytes, value, end);
    if (behind < 0) return behind === -1 ? false : this.#break();
    const held = jsonOf(textOf(bytes, value, behind));
    if (key === "error" && typeof held === "string") this.#error = held;
    if (key === "isPartial") this.#isPartial ||= held === true;
    if (key === "warnings" && Array.isArray(held)) this.#warnings.push(...held.map(String));
    return this.#go(behind, "object");
  }

  #seriesKey(key: string, bytes: Uint8Array, value: number, end: number): boolean {
    const first = bytes[value]!;
    if (key === "metric" && first === OPEN_BRACE) {
      const behind = nestedEnd(bytes, value, end);
      if (behind < 0) return false;
      this.#id = this.#series.ofJson(textOf(bytes, value, behind));
      return this.#id === null ? this.#break() : this.#go(behind, "series");
    }
    if (key === "values" && first === OPEN_BRACKET) return this.#go(value + 1, "values");
    if (key !== "value" || first !== OPEN_BRACKET) return this.#pass(value);
    const behind = nestedEnd(bytes, value, end);
    if (behind < 0) return false;
    return this.#sample(bytes, value, end) < 0 ? this.#break() : this.#go(behind, "series");
  }

  /** The hot loop: [1794695133.25,"98"],… */
  #values(bytes: Uint8Array, end: number): boolean {
    let at = this.#at;
    for (;;) {
      while (at < end && (bytes[at] === COMMA || bytes[at]! <= SPACE)) at++;
      this.#at = at;
      if (at >= end) return false;
      const byte = bytes[at]!;
      if (byte === CLOSE_BRACKET) return this.#go(at + 1, "series");
      if (byte !== OPEN_BRACKET) return this.#break();
      at = this.#sample(bytes, at, end);
      if (at < 0) return at === -1 ? false : this.#break();
    }
  }

  /** `from` is its bracket. Takes nothing before the bracket that closes it. */
  #sample(bytes: Uint8Array, from: number, end: number): number {
    const number = this.#number;
    let at = number.read(bytes, skipSpace(bytes, from + 1, end), end);
    if (at < 0) return at;
    const timeS = number.value;
    while (at < end && (bytes[at]! <= SPACE || bytes[at] === COMMA || bytes[at] === QUOTE)) at++;
    if (at >= end) return -1;
    at = number.read(bytes, at, end);
    if (at < 0) return at;
    while (at < end && (bytes[at]! <= SPACE || bytes[at] === QUOTE)) at++;
    if (at >= end) return -1;
    if (bytes[at] !== CLOSE_BRACKET) return -2;
    if (timeS >= this.#fromS) {
      this.#columns.addTime(timeS);
      this.#columns.addValue(number.value);
    }
    return at + 1;
  }

  #pass(value: number): boolean {
    this.#skipper = new ValueSkipper();
    this.#after = this.#state;
    return this.#go(value, "skip");
  }

  #skip(bytes: Uint8Array, end: number): boolean {
    const behind = this.#skipper.skip(bytes, this.#at, end);
    return behind < 0 ? this.#wait(end) : this.#go(behind, this.#after);
  }

  #go(at: number, state: State): boolean {
    this.#at = at;
    this.#state = state;
    return true;
  }

  #wait(at: number): boolean {
    this.#at = at;
    return false;
  }

  #break(): boolean {
    this.#defect = `is not an answer of the Prometheus query API from byte ${this.#before + this.#at} on`;
    this.#state = "broken";
    return false;
  }
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("utf8");
}
