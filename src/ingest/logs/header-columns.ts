/**
 * Learns a file's header from its own lines: what stands at the front whatever the message says is the header. A column
 * belongs to it where it has one kind (a number, a name with a colon, a bracket) before all the different messages. Every
 * message counts once, so that the one which makes up most of a file, and has a number where it has one, proves nothing.
 */
import { areWriters } from "./header-labels.ts";
import { type Column, type ColumnKind, columnsOf } from "./line-columns.ts";
import { digitless, type LineForm } from "./line-forms.ts";
import type { LinePrefix } from "./line-prefix.ts";
import { levelOf } from "./prefix-levels.ts";

/** "padded": a word that blanks fill up to a width; "fenced": whatever a bar or a dash follows. */
type HeaderKind = ColumnKind | "padded" | "fenced";

export interface HeaderColumns {
  readonly kinds: readonly HeaderKind[];
  /** The columns of times and levels: up to the last of them everything is header. */
  readonly anchors: readonly number[];
  /** The column that names the host; -1 where none does. */
  readonly host: number;
}

const MOST_COLUMNS = 14;
/** Lines of which half have a time in one column. */
const FEWEST_LINES = 20;
const SHARE_OF_LINES = 0.5;
/** Different messages before which a column is seen. */
const FEWEST_MESSAGES = 6;
const SHARE_OF_MESSAGES = 0.95;
/** The same for words before a time: a time says more than a number. */
const FEWEST_BEHIND_TIME = 3;
/** So much of a message tells it from others. */
const MESSAGE_CHARS = 32;
const NEARLY_ALL = 0.9;
/** Different messages of a component, in the mean; keys of a list of settings have one each. */
const MESSAGES_A_NAME = 1.5;
const HOST = /^[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*$/;

interface Row extends LineForm {
  readonly columns: readonly Column[];
}

/** `lines`: some of them as they are, since hosts may differ in numbers only. Null where they show no layout. */
export function headerColumns(
  forms: readonly LineForm[],
  lines: readonly string[],
): HeaderColumns | null {
  const rows = forms.map(({ line, lines: count }) => ({
    line,
    lines: count,
    columns: columnsOf(line, 0, MOST_COLUMNS + 1),
  }));
  const first = firstAnchor(rows);
  if (!first) return null;
  const { at, kind } = first;
  const own = rows.filter(({ columns }) => columns[at]?.kind === kind);
  // Whole lines that are all alike have no header: "saved at 1717171717 as 17".
  if (at > 0 && messagesBehind(own, at).size < FEWEST_BEHIND_TIME) return null;
  const kinds: HeaderKind[] = [];
  const anchors = [at];
  for (let column = 0; column < MOST_COLUMNS; column++) {
    // What it is matters only if it could be a time or a level: all that stands before one of these is header.
    const of = column !== at && mayAnchor(own, column) ? kindBefore(own, column) : "word";
    kinds.push(column === at ? kind : of);
    if (column > at && (of === "time" || of === "level")) anchors.push(column);
  }
  let end = anchors.at(-1)! + 1;
  for (; end < MOST_COLUMNS; end++) {
    kinds[end] = kindBefore(own, end);
    if (isField(own, kinds[end]!, end)) continue;
    if (kindBefore(own, end + 1) !== "mark") break;
    kinds[end] = "fenced";
  }
  return { kinds: kinds.slice(0, end), anchors, host: hostColumn(lines, at, end) };
}

/** The first column that holds a time in most lines; where none does, a level. */
function firstAnchor(rows: readonly Row[]): { at: number; kind: ColumnKind } | null {
  const lines = rows.reduce((sum, row) => sum + row.lines, 0);
  const least = Math.max(FEWEST_LINES, SHARE_OF_LINES * lines);
  for (const kind of ["time", "level"] as const) {
    for (let at = 0; at < MOST_COLUMNS; at++) {
      let having = 0;
      for (const row of rows) if (row.columns[at]?.kind === kind) having += row.lines;
      if (having >= least) return { at, kind };
    }
  }
  return null;
}

/** The kind that the column has whatever the message behind it says. */
function kindBefore(rows: readonly Row[], column: number): HeaderKind {
  const seen = new Set<string>();
  const having = new Map<HeaderKind, number>();
  for (const row of rows) {
    const of = row.columns[column];
    if (!of) continue;
    const kind = of.kind === "word" && isPadded(row, column) ? "padded" : of.kind;
    const key = `${kind} ${messageBehind(row, column)}`;
    if (seen.has(key)) continue;
    seen.add(key);
    having.set(kind, (having.get(kind) ?? 0) + 1);
  }
  if (seen.size < FEWEST_MESSAGES) return "word";
  for (const [kind, count] of having) if (count >= SHARE_OF_MESSAGES * seen.size) return kind;
  return "word";
}

function mayAnchor(rows: readonly Row[], column: number): boolean {
  let having = 0;
  for (const { columns } of rows) {
    const kind = columns[column]?.kind;
    if (kind === "time" || kind === "level") having++;
  }
  return having >= rows.length / 2;
}

/** Whether a column behind the last time or level still belongs to the header. */
function isField(rows: readonly Row[], kind: HeaderKind, column: number): boolean {
  if (kind === "word") return false;
  if (kind !== "named") return true;
  const names = new Set<string>();
  const messages = new Set<string>();
  for (const row of rows) {
    const of = row.columns[column];
    if (!of) continue;
    const name = digitless(row.line.slice(of.from, of.to));
    names.add(name);
    messages.add(`${name} ${messageBehind(row, column)}`);
  }
  return messages.size >= MESSAGES_A_NAME * names.size;
}

function messagesBehind(rows: readonly Row[], column: number): Set<string> {
  const having = rows.filter(({ columns }) => columns[column] !== undefined);
  return new Set(having.map((row) => messageBehind(row, column)));
}

function messageBehind({ line, columns }: Row, column: number): string {
  const { to } = columns[column]!;
  const front = digitless(line.slice(to, to + 2 * MESSAGE_CHARS).trimStart());
  return front.slice(0, MESSAGE_CHARS);
}

function isPadded({ columns }: Row, column: number): boolean {
  const next = columns[column + 1];
  return next !== undefined && next.from - columns[column]!.to >= 2;
}

/** The first column that holds names of machines; behind the time they must be several, in turns. */
function hostColumn(lines: readonly string[], anchor: number, end: number): number {
  const rows = lines.map((line) => columnsOf(line, 0, end));
  for (let column = 0; column < end; column++) {
    const names: string[] = [];
    rows.forEach((columns, i) => {
      const of = columns[column];
      const name = of?.kind === "id" ? lines[i]!.slice(of.from, of.to) : "";
      if (HOST.test(name)) names.push(name);
    });
    if (names.length < NEARLY_ALL * lines.length) continue;
    if (column < anchor || areWriters(names)) return column;
  }
  return -1;
}

/** Where the time stands by which the line's layout is known; -1 where the line has another layout. */
export function anchorOf(header: HeaderColumns, line: string, start: number): number {
  const at = header.anchors[0]!;
  const column = columnsOf(line, start, at + 1)[at];
  return column && column.kind === header.kinds[at] ? column.from : -1;
}

/** Takes the learnt columns off the message, as far as the line has them, and notes what they say. */
export function skipColumns(
  header: HeaderColumns,
  line: string,
  start: number,
  out: LinePrefix,
): void {
  const { kinds, anchors, host } = header;
  const columns = columnsOf(line, start, kinds.length + 1);
  const has = (column: number): boolean => {
    const kind = columns[column]?.kind;
    const learnt = kinds[column];
    if (learnt === "fenced") return columns[column + 1]?.kind === "mark";
    return kind === learnt || (learnt === "padded" && kind === "word");
  };
  if (!has(anchors[0]!)) return;
  let last = anchors.findLast(has)!;
  while (last + 1 < kinds.length && has(last + 1)) last++;
  const { to } = columns[last]!;
  const next = columns[last + 1]?.from ?? line.length;
  if (to > out.contentStart || isTooMuch(header, columns, last, line, out)) {
    // Blanks before the message are its own, unless the column is padded.
    out.contentStart = kinds[last] === "padded" ? next : Math.min(next, to + 1);
  }
  const named = host >= 0 && host <= last ? columns[host]! : null;
  if (named && out.hostFrom < 0 && HOST.test(line.slice(named.from, named.to))) {
    out.hostFrom = named.from;
    out.hostTo = named.to;
  }
  const level = columns.find(({ kind }, i) => i <= last && kind === "level" && anchors.includes(i));
  if (level && out.level === null) out.level = levelIn(line.slice(level.from, level.to));
}

/**
 * Whether the line alone was taken for more header than the file has: behind the file's own column of names, or the dash
 * that ends it, another name belongs to the message ("Master: Fetcher: started"). Ranks and levels do not.
 */
function isTooMuch(
  { kinds }: HeaderColumns,
  columns: readonly Column[],
  last: number,
  line: string,
  out: LinePrefix,
): boolean {
  const isWhole = last + 1 === kinds.length && (kinds[last] === "named" || kinds[last] === "mark");
  const behind = columns[last + 1];
  if (!isWhole || !behind || behind.to > out.contentStart || out.rankFrom >= behind.from)
    return false;
  const word = line.slice(behind.from, behind.to).replaceAll(/[^A-Za-z]/g, "");
  return levelOf(word) === null;
}

const LETTERS: Readonly<Record<string, LinePrefix["level"]>> = {
  V: "debug",
  D: "debug",
  I: "info",
  W: "warning",
  E: "error",
  F: "fatal",
};

function levelIn(word: string): LinePrefix["level"] {
  return LETTERS[word] ?? levelOf(/[A-Za-z]+/.exec(word)?.[0] ?? "");
}
