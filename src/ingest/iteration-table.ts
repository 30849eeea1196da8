/**
 * Iteration times as a table: CSV with a header (./iteration-table/csv.ts), or the JSON that Megatron-LM's
 * functional tests keep of a run (./iteration-table/golden-values.ts).
 */
import type { Reading } from "../model/reading.ts";
import { CsvSink } from "./iteration-table/csv.ts";
import { findColumns, rowsFit } from "./iteration-table/csv-columns.ts";
import { goldenValues, looksLikeGoldenValues } from "./iteration-table/golden-values.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const TABLE_FORMAT: Reading["format"] = "iteration-table";

export const iterationTable: Reader = {
  format: TABLE_FORMAT,
  sniff: (head: Head): boolean => looksLikeGoldenValues(head.text) || looksLikeCsv(head),
  open: (file: string): Sink => new TableSink(file),
};

/** Strict: a header whose columns mean an iteration and a duration, and rows of numbers that fit it. */
function looksLikeCsv({ name, text }: Head): boolean {
  const lines = text.split(/\r?\n/, 8);
  const columns = findColumns(lines[0]!, name);
  return columns !== null && rowsFit(lines.slice(1), columns);
}

const SPACE = 32;
const BRACE = 123;
const MAX_BLANKS = 1000;

/** Which of the two it is shows in the first byte that is not blank. */
class TableSink implements Sink {
  readonly #file: string;
  readonly #blanks: number[] = [];
  #inner: Sink | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    if (!this.#inner) {
      const first = chunk.find((byte) => byte > SPACE);
      if (first === undefined && this.#blanks.length + chunk.length < MAX_BLANKS) {
        this.#blanks.push(...chunk);
        return;
      }
      this.#inner = first === BRACE ? goldenValues(this.#file) : new CsvSink(this.#file);
      this.#inner.push(Uint8Array.from(this.#blanks));
    }
    this.#inner.push(chunk);
  }

  end(): Reading {
    return (this.#inner ?? new CsvSink(this.#file)).end();
  }
}
