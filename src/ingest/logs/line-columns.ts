/** The front of a line cut into columns, each with the kind that its form shows. */
import type { LinePrefix } from "./line-prefix.ts";
import { levelAt, levelOf } from "./prefix-levels.ts";
import { stampAt } from "./prefix-stamps.ts";

/** "named" ends in a colon, "id" is a word with a digit in it, "mark" has neither letters nor digits. */
export type ColumnKind = "time" | "level" | "number" | "bracket" | "named" | "id" | "mark" | "word";

export interface Column {
  readonly kind: ColumnKind;
  readonly from: number;
  readonly to: number;
}

const CLOSING: Readonly<Record<string, string>> = { "[": "]", "(": ")", "<": ">" };
/** Threads have long names, sentences in brackets are longer. */
const LONGEST_BRACKET = 120;
/** Android's and glog's levels. */
const LETTER = /^[VDIWEF]$/;
const NUMBER = /^[-+#]?\d[\d.,:/_-]*$/;
const MARK = /^[^A-Za-z0-9\u0080-\uffff]+$/;
const NAMED = /^[A-Za-z_/].*:$/;
const stamp = { stampKind: "", stampFrom: -1 } as LinePrefix;

export function columnsOf(line: string, start: number, most: number): Column[] {
  const columns: Column[] = [];
  let at = start;
  while (columns.length < most) {
    while (isBlank(line, at)) at++;
    if (at >= line.length) break;
    const column = columnAt(line, at);
    columns.push(column);
    at = column.to;
  }
  return columns;
}

function columnAt(line: string, from: number): Column {
  // Times and levels begin with a digit, a capital or a bracket; most words of a message do not.
  if (line[from]! <= "[") {
    stamp.stampKind = "";
    const stampEnd = stampAt(line, from, stamp);
    if (stampEnd > 0) return { kind: "time", from, to: pointEnd(line, stampEnd) };
    const level = levelAt(line, from);
    if (level) return { kind: "level", from, to: level.end };
  }
  const bracket = bracketEnd(line, from);
  if (bracket > 0) return { kind: "bracket", from, to: pointEnd(line, bracket) };
  const to = wordEnd(line, from);
  return { kind: kindOf(line.slice(from, to)), from, to };
}

function kindOf(word: string): ColumnKind {
  if (levelOf(word) !== null || LETTER.test(word)) return "level";
  if (NUMBER.test(word)) return "number";
  if (MARK.test(word)) return "mark";
  if (NAMED.test(word)) return "named";
  return /\d/.test(word) ? "id" : "word";
}

/** Behind the bracket that closes the one at `from`; -1 where none is opened there or none closes it. */
function bracketEnd(line: string, from: number): number {
  const open = line[from]!;
  const close = CLOSING[open];
  if (close === undefined) return -1;
  let depth = 0;
  for (let at = from; at < line.length && at < from + LONGEST_BRACKET; at++) {
    if (line[at] === open) depth++;
    else if (line[at] === close && --depth === 0) return at + 1;
  }
  return -1;
}

/** "04:30:30, Info", "[main]: started". */
function pointEnd(line: string, at: number): number {
  return /[,:;]/.test(line[at] ?? "") ? at + 1 : at;
}

/** Bars need no blanks: "09:08:07|agent|17|started". */
function wordEnd(line: string, from: number): number {
  if (line[from] === "|") return from + 1;
  let at = from;
  while (at < line.length && line[at] !== "|" && !isBlank(line, at)) at++;
  return at;
}

function isBlank(line: string, at: number): boolean {
  const code = line.charCodeAt(at);
  return code === 32 || code === 9;
}
