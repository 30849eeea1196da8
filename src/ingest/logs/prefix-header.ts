/**
 * What a file's lines say together where one alone says nothing: a column that nearly all of them have is a header's,
 * even where each could be the beginning of a message.
 */
import { anchorOf, type HeaderColumns, headerColumns, skipColumns } from "./header-columns.ts";
import { areWriters, type Label, labelOf, skipLabel } from "./header-labels.ts";
import { formsOf, type LineForm, sampleOf } from "./line-forms.ts";
import type { LinePrefix } from "./line-prefix.ts";
import { newPrefix, readPrefix } from "./prefix.ts";

export interface Header {
  /** Before every line. */
  readonly label: Label;
  /** The layout of its columns; null where single lines say as much. */
  readonly columns: HeaderColumns | null;
  /** What separates the header from the message in every line, within its first words. */
  readonly fence: "" | " - " | " | ";
  /** Which of the columns between bars names the host; -1 where none does. */
  readonly hostColumn: number;
}

const FEWEST = 20;
const NEARLY_ALL = 0.9;
/** Characters within which a fence is looked for, and the words that may stand before it. */
const FENCE_WITHIN = 60;
const FENCE_WORDS = 3;
const HOSTISH = /^[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*$/;
const BAR = /\| ?$/;
/** Lines whose names of hosts are compared. */
const MOST_NAMED = 200;

/** The header of a file that begins with this text, whose last line may be cut off. */
export function headerOfText(text: string): Header | null {
  return headerOf(sampleOf(text));
}

/** Null where the single lines say all there is. */
export function headerOf(sample: readonly string[]): Header | null {
  const lines = sample.filter((line) => line.trim() !== "");
  if (lines.length < FEWEST) return null;
  const label = labelOf(lines, isKnown);
  const out = newPrefix();
  const rests = label === "" ? lines : lines.map((line) => line.slice(skipLabel(line, label, out)));
  const read = formsOf(rests).map(readForm);
  const fence = fenceOf(read);
  const header: Header = {
    label,
    columns: neededColumns(read, rests.slice(0, MOST_NAMED)),
    fence,
    hostColumn: fence === " | " ? hostColumn(rests.slice(0, MOST_NAMED)) : -1,
  };
  return label === "" && fence === "" && header.columns === null ? null : header;
}

/** What its first line shows by itself. */
interface ReadForm extends LineForm {
  readonly contentStart: number;
  readonly isStamped: boolean;
  readonly level: LinePrefix["level"];
}

function readForm(form: LineForm): ReadForm {
  const out = newPrefix();
  readPrefix(form.line, out);
  return {
    ...form,
    contentStart: out.contentStart,
    isStamped: out.stampFrom >= 0,
    level: out.level,
  };
}

/** What nearly all lines have near their front, and at least half of them where they are known to end their header. */
function fenceOf(forms: readonly ReadForm[]): Header["fence"] {
  const all = linesOf(forms);
  const stamped = forms.filter(({ isStamped }) => isStamped);
  const own = linesOf(stamped);
  if (own < Math.max(FEWEST, all / 2)) return "";
  for (const fence of [" - ", " | "] as const) {
    const ending = stamped.filter((form) => endsIn(fence, form.line, form.contentStart));
    if (linesOf(ending) < own / 2) continue;
    const having = stamped.filter((form) => fenceEnd(fence, form.line, form.contentStart) >= 0);
    if (linesOf(having) >= NEARLY_ALL * own) return fence;
  }
  return "";
}

function linesOf(forms: readonly LineForm[]): number {
  return forms.reduce((sum, { lines }) => sum + lines, 0);
}

/** Where each line alone shows as much, the columns are not worth their time. */
function neededColumns(forms: readonly ReadForm[], lines: readonly string[]): HeaderColumns | null {
  const columns = headerColumns(forms, lines);
  if (!columns) return null;
  const out = newPrefix();
  const isNeeded = forms.some(({ line, contentStart, level }) => {
    out.contentStart = contentStart;
    out.level = level;
    skipColumns(columns, line, 0, out);
    return out.contentStart !== contentStart || out.level !== level;
  });
  return isNeeded ? columns : null;
}

function isKnown(line: string): boolean {
  const out = newPrefix();
  readPrefix(line, out);
  return out.contentStart > 0;
}

/** The first column that holds names of machines, several of them, in turns. */
function hostColumn(lines: readonly string[]): number {
  const out = newPrefix();
  const heads = lines.map((line) => {
    readPrefix(line, out);
    return line.slice(0, out.contentStart);
  });
  const rows = heads
    .filter((head) => BAR.test(head))
    .map((head) => head.split("|").map((cell) => cell.trim()));
  const columns = Math.min(...rows.map(({ length }) => length)) - 1;
  for (let column = 0; column < columns; column++) {
    const names = rows.map((row) => row[column]!);
    const hosts = names.filter((name) => HOSTISH.test(name));
    if (hosts.length >= NEARLY_ALL * names.length && areWriters(hosts)) return column;
  }
  return -1;
}

/** Like readPrefix, for a line of a file that has this header. */
export function readWith(header: Header, line: string, out: LinePrefix): void {
  const labelled = newPrefix();
  const start = skipLabel(line, header.label, labelled);
  const { columns } = header;
  const anchor = columns ? anchorOf(columns, line, start) : -1;
  readPrefix(start > 0 ? line.slice(start) : line, out);
  if (start > 0) shift(out, start);
  if (out.stampFrom < 0 && anchor > start) {
    // What stands before the time is no message here.
    readPrefix(line.slice(anchor), out);
    shift(out, anchor);
  }
  if (start > 0) {
    if (out.hostFrom < 0) ({ hostFrom: out.hostFrom, hostTo: out.hostTo } = labelled);
    if (out.rankFrom < 0) ({ rankFrom: out.rankFrom, rankTo: out.rankTo } = labelled);
    if (out.writerFrom < 0) ({ writerFrom: out.writerFrom, writerTo: out.writerTo } = labelled);
  }
  if (columns) skipColumns(columns, line, start, out);
  if (out.stampFrom < 0) return;
  if (header.fence !== "")
    out.contentStart = Math.max(out.contentStart, fenceEnd(header.fence, line, out.contentStart));
  if (header.hostColumn >= 0 && out.hostFrom < 0) nameHost(header.hostColumn, line, start, out);
}

function nameHost(column: number, line: string, start: number, out: LinePrefix): void {
  let from = start;
  for (let i = 0; i < column; i++) {
    from = line.indexOf("|", from) + 1;
    if (from === 0 || from > out.contentStart) return;
  }
  const cell = line.slice(from, line.indexOf("|", from));
  const name = cell.trim();
  if (!HOSTISH.test(name)) return;
  out.hostFrom = from + cell.indexOf(name);
  out.hostTo = out.hostFrom + name.length;
}

function endsIn(fence: string, line: string, contentStart: number): boolean {
  return line.slice(0, contentStart).trimEnd().endsWith(fence.trim());
}

/** Where the message begins behind the fence; -1 where none is near. */
function fenceEnd(fence: string, line: string, contentStart: number): number {
  if (endsIn(fence, line, contentStart)) return contentStart;
  const at = line.indexOf(fence, contentStart);
  if (at < 0 || at > contentStart + FENCE_WITHIN) return -1;
  const words = line.slice(contentStart, at).trim().split(/ +/).length;
  return words <= FENCE_WORDS ? at + fence.length : -1;
}

function shift(out: LinePrefix, by: number): void {
  out.contentStart += by;
  if (out.stampFrom >= 0) out.stampFrom += by;
  if (out.hostFrom >= 0) {
    out.hostFrom += by;
    out.hostTo += by;
  }
  if (out.rankFrom >= 0) {
    out.rankFrom += by;
    out.rankTo += by;
  }
  if (out.writerFrom >= 0) {
    out.writerFrom += by;
    out.writerTo += by;
  }
}
