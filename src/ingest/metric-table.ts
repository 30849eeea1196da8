/**
 * Samples of machines as a table with a header: CSV or TSV. A row may be one sample (time, machine, metric, value),
 * what a machine measured at a time (a column per metric), or a time of all machines (a column per machine or series).
 */
import type { Head, Reader } from "./reader.ts";
import { HEAD_BYTES } from "./reader.ts";
import { DelimitedSink, METRIC_TABLE } from "./metric-table/delimited.ts";
import { delimiterOf, isPreamble, textsOf } from "./metric-table/fields.ts";
import { planTable } from "./metric-table/table-plan.ts";

const SNIFFED_ROWS = 64;
/** Where a table must have a delimiter, so that most logs cost nothing. */
const FIRST_CHARS = 4096;

export const metricTable: Reader = {
  format: METRIC_TABLE,
  sniff: ({ name, bytes, text }: Head): boolean => {
    if (text.includes("\0") || /^\s*[{<[]/.test(text)) return false;
    if (!/[,;\t]/.test(text.slice(0, FIRST_CHARS))) return false;
    const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
      .toString("utf8")
      .split(/\r?\n/, SNIFFED_ROWS + 8);
    while (lines.length > 1 && isPreamble(lines[0]!.slice(0, 8))) lines.shift();
    const [header = "", ...rest] = lines;
    const delimiter = delimiterOf(header);
    const names = textsOf(header, delimiter);
    if (names.length < 2) return false;
    // The header of a thousand machines' twenty metrics is longer than what a sniffer sees; its end may be cut.
    if (rest.length === 0) {
      return bytes.length >= HEAD_BYTES && planTable(names.slice(0, -1), [], name) !== null;
    }
    if (rest.length > 1) rest.pop();
    const rows = rest.filter((row) => row.trim() !== "").map((row) => textsOf(row, delimiter));
    const fitting = rows.filter(
      (row) => row.length === names.length || row.length === names.length + 1,
    );
    return fitting.length > 0.5 * rows.length && planTable(names, fitting, name) !== null;
  },
  open: (file) => new DelimitedSink(file),
};
