/** Where a line's fields are. Quoted fields may hold delimiters and doubled quotes, but no line ends. */
import { grown } from "../grown.ts";

const QUOTE = 34;
const SPACE = 32;
const TAB = 9;
const MAX_FIELDS = 1 << 20;

export class Fields {
  delimiter = 44;
  /** By field: its bytes without quotes and blanks around them. Doubled quotes are still double. */
  from = new Int32Array(64);
  to = new Int32Array(64);

  /** How many fields there are. */
  split(bytes: Buffer, start: number, end: number): number {
    const { delimiter } = this;
    let fields = 0;
    let at = start;
    for (;;) {
      if (fields === this.from.length) {
        this.from = grown(this.from, fields + 1);
        this.to = grown(this.to, fields + 1);
      }
      while (at < end && (bytes[at] === SPACE || (bytes[at] === TAB && delimiter !== TAB))) at++;
      let to = 0;
      if (at < end && bytes[at] === QUOTE) {
        to = ++at;
        while (to < end && (bytes[to] !== QUOTE || bytes[to + 1] === QUOTE)) {
          to += bytes[to] === QUOTE ? 2 : 1;
        }
        if (to > end) to = end;
        this.from[fields] = at;
        this.to[fields++] = to;
        at = to;
        while (at < end && bytes[at] !== delimiter) at++;
      } else {
        this.from[fields] = at;
        while (at < end && bytes[at] !== delimiter) at++;
        to = at;
        while (to > this.from[fields]! && bytes[to - 1] === SPACE) to--;
        this.to[fields++] = to;
      }
      if (at >= end || fields >= MAX_FIELDS) return fields;
      at++;
    }
  }
}

/** A line's fields as texts: for headers and the few rows that tell what columns are. */
export function textsOf(line: string, delimiter: number): string[] {
  const bytes = Buffer.from(line.replace(/^\uFEFF/, ""));
  const fields = new Fields();
  fields.delimiter = delimiter;
  const width = fields.split(bytes, 0, bytes.length);
  return Array.from({ length: width }, (_, i) =>
    bytes.toString("utf8", fields.from[i], fields.to[i]).replaceAll('""', '"'),
  );
}

/** The one of comma, tab, semicolon that the header has most of outside quotes. */
export function delimiterOf(header: string): number {
  const bare = header.replace(/"(?:[^"]|"")*"/g, "").replace(/\{[^}]*\}/g, "");
  const times = (char: string): number => bare.split(char).length - 1;
  const [best] = [",", "\t", ";"].sort((a, b) => times(b) - times(a));
  return best!.charCodeAt(0);
}

/** What stands before some headers: spreadsheets' "sep=,", comments and InfluxDB's annotations. */
export function isPreamble(begin: string): boolean {
  return /^(?:ï»¿)?(?:#|"?sep=)|^\s*$/.test(begin);
}
