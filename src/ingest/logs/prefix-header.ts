/**
 * What a file's lines say together where one alone says nothing: a column that nearly all of them have is a header's,
 * even where each could be the beginning of a message.
 */
import { anchorOf, type HeaderColumns, headerColumns, skipColumns } from "./header-columns.ts";
import { areWriters, type Label, labelOf, skipLabel } from "./header-labels.ts";
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
const MOST = 0.8;
/** Characters within which a fence is looked for, and the words that may stand before it. */
const FENCE_WITHIN = 60;
const FENCE_WORDS = 3;
const HOSTISH = /^[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*$/;
/** So many lines that differ in more than numbers show what there is; more only cost time in jobs of many files. */
const MOST_FORMS = 200;
/** Of a line only its head is looked at. */
const MOST_HEAD = 600;

/** The header of a file that begins with this text, whose last line may be cut off. */
export function headerOfText(text: string): Header | null {
  const lines: string[] = [];
  const forms = new Set<string>();
  let from = 0;
  for (let to; (to = text.indexOf("\n", from)) >= 0 && forms.size < MOST_FORMS; from = to + 1) {
    const line = text.slice(from, Math.min(to, from + MOST_HEAD)).replace(/\r+$/, "");
    lines.push(line);
    forms.add(line.replaceAll(/\d+/g, "0"));
  }
  return headerOf(lines);
}

/** Null where the single lines say all there is. */
export function headerOf(sample: readonly string[]): Header | null {
  const lines = sample.filter((line) => line.trim() !== "");
  if (lines.length < FEWEST) return null;
  const label = labelOf(lines, isKnown);
  const seen = new Seen(label);
  for (const line of lines) seen.line(line);
  const isFence = (count: number): boolean =>
    seen.stamped >= Math.max(FEWEST, lines.length / 2) && count >= MOST * seen.stamped;
  const fence = isFence(seen.dashes) ? " - " : isFence(seen.bars) ? " | " : "";
  const header: Header = {
    label,
    columns: neededColumns(lines, label),
    fence,
    hostColumn: fence === " | " ? hostColumn(seen.heads) : -1,
  };
  return label === "" && fence === "" && header.columns === null ? null : header;
}

/** Where each line alone shows as much, the columns are not worth their time. */
function neededColumns(lines: readonly string[], label: Label): HeaderColumns | null {
  const out = newPrefix();
  const starts = lines.map((line) => skipLabel(line, label, out));
  const columns = headerColumns(lines, starts);
  if (!columns) return null;
  const forms = new Set<string>();
  for (const [i, line] of lines.entries()) {
    const form = line.replaceAll(/\d+/g, "0");
    if (forms.has(form)) continue;
    forms.add(form);
    const rest = line.slice(starts[i]);
    readPrefix(rest, out);
    const { contentStart, level } = out;
    skipColumns(columns, rest, 0, out);
    if (out.contentStart !== contentStart || out.level !== level) return columns;
  }
  return null;
}

function isKnown(line: string): boolean {
  const out = newPrefix();
  readPrefix(line, out);
  return out.contentStart > 0;
}

/** What one line shows; lines that differ in numbers only show the same. */
interface Shown {
  readonly isStamped: boolean;
  readonly isDash: boolean;
  readonly isBar: boolean;
}

/** Adds up what the lines show. */
class Seen {
  readonly #label: Label;
  readonly #known = new Map<string, Shown>();
  readonly #out = newPrefix();
  readonly heads: string[] = [];
  stamped = 0;
  dashes = 0;
  bars = 0;

  constructor(label: Label) {
    this.#label = label;
  }

  line(line: string): void {
    const form = line.replaceAll(/\d+/g, "0");
    let shown = this.#known.get(form);
    // Hosts are numbers to a form, and only columns between bars can name them.
    if (!shown || shown.isBar) this.#known.set(form, (shown = this.#look(line)));
    if (!shown.isStamped) return;
    this.stamped++;
    if (shown.isDash) this.dashes++;
    if (shown.isBar) this.bars++;
  }

  #look(line: string): Shown {
    const out = this.#out;
    const rest = line.slice(skipLabel(line, this.#label, out));
    readPrefix(rest, out);
    const head = rest.slice(0, out.contentStart);
    const isBar = /\| ?$/.test(head);
    if (isBar) this.heads.push(head);
    return { isStamped: out.stampFrom >= 0, isDash: head.endsWith(" - "), isBar };
  }
}

/** The first column that holds names of machines, several of them, in turns. */
function hostColumn(heads: readonly string[]): number {
  const rows = heads.map((head) => head.split("|").map((cell) => cell.trim()));
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
  if (header.fence !== "") skipFence(header.fence, line, out);
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

function skipFence(fence: string, line: string, out: LinePrefix): void {
  if (line.slice(0, out.contentStart).trimEnd().endsWith(fence.trim())) return;
  const at = line.indexOf(fence, out.contentStart);
  if (at < 0 || at > out.contentStart + FENCE_WITHIN) return;
  const words = line.slice(out.contentStart, at).trim().split(/ +/).length;
  if (words <= FENCE_WORDS) out.contentStart = at + fence.length;
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
