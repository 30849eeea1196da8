/**
 * What a file's lines say together where one alone says nothing: a column that nearly all of them have is a header's,
 * even where each could be the beginning of a message.
 */
import { areWriters, type Label, labelOf, skipLabel } from "./header-labels.ts";
import type { LinePrefix } from "./line-prefix.ts";
import { levelAt } from "./prefix-levels.ts";
import { newPrefix, readPrefix } from "./prefix.ts";

export interface Header {
  /** Before every line. */
  readonly label: Label;
  /** Words between the time and a plain level, the level itself not counted; -1 where there is none. */
  readonly wordsToLevel: number;
  /** Whether a number (a process) follows the time in every line. */
  readonly hasNumber: boolean;
  /** What separates the header from the message in every line, within its first words. */
  readonly fence: "" | " - " | " | ";
  /** Which of the columns between bars names the host; -1 where none does. */
  readonly hostColumn: number;
}

const FEWEST = 20;
const NEARLY_ALL = 0.9;
const MOST = 0.8;
const NUMBER = /^\d{1,10} +(?=\S)/;
const LEVEL_WORDS = 4;
/** Characters within which a fence is looked for, and the words that may stand before it. */
const FENCE_WITHIN = 60;
const FENCE_WORDS = 3;
const HOSTISH = /^[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*$/;
/** So many lines show what there is; more only cost time in jobs of many files. */
const MOST_LINES = 200;
/** Of a line only its head is looked at. */
const MOST_HEAD = 600;

/** The header of a file that begins with this text, whose last line may be cut off. */
export function headerOfText(text: string): Header | null {
  const lines = text.split(/\r*\n/, MOST_LINES + 1);
  lines.pop();
  return headerOf(lines.map((line) => line.slice(0, MOST_HEAD)));
}

/** Null where the single lines say all there is. */
export function headerOf(sample: readonly string[]): Header | null {
  const lines = sample.filter((line) => line.trim() !== "");
  if (lines.length < FEWEST) return null;
  const label = labelOf(lines, isKnown);
  const seen = new Seen(label);
  for (const line of lines) seen.line(line);
  const { stamped } = seen;
  const least = Math.max(FEWEST, lines.length / 2);
  const isStamped = stamped >= least;
  const best = seen.levels.indexOf(Math.max(...seen.levels));
  const hasLevels =
    isStamped && seen.unlevelled >= least && seen.levels[best]! >= NEARLY_ALL * seen.unlevelled;
  const isFence = (count: number): boolean => isStamped && count >= MOST * stamped;
  const fence = isFence(seen.dashes) ? " - " : isFence(seen.bars) ? " | " : "";
  const header: Header = {
    label,
    wordsToLevel: hasLevels ? best : -1,
    hasNumber: isStamped && seen.numbers >= 0.98 * stamped && areVaried(seen.rests),
    fence,
    hostColumn: fence === " | " ? hostColumn(seen.heads) : -1,
  };
  const isPlain = label === "" && header.wordsToLevel < 0 && !header.hasNumber;
  return isPlain && fence === "" ? null : header;
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
  readonly isNumber: boolean;
  readonly hasLevel: boolean;
  readonly words: number;
}

/** Adds up what the lines show. */
class Seen {
  readonly #label: Label;
  readonly #known = new Map<string, Shown>();
  readonly #out = newPrefix();
  readonly heads: string[] = [];
  readonly rests: string[] = [];
  readonly levels = new Float64Array(LEVEL_WORDS + 1);
  stamped = 0;
  dashes = 0;
  bars = 0;
  numbers = 0;
  unlevelled = 0;

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
    if (shown.isNumber) this.numbers++;
    if (shown.hasLevel) return;
    this.unlevelled++;
    if (shown.words >= 0) this.levels[shown.words]!++;
  }

  #look(line: string): Shown {
    const out = this.#out;
    const rest = line.slice(skipLabel(line, this.#label, out));
    readPrefix(rest, out);
    const head = rest.slice(0, out.contentStart);
    const message = rest.slice(out.contentStart);
    const isStamped = out.stampFrom >= 0;
    const isBar = /\| ?$/.test(head);
    if (isBar) this.heads.push(head);
    if (isStamped) this.rests.push(message);
    return {
      isStamped,
      isDash: head.endsWith(" - "),
      isBar,
      isNumber: NUMBER.test(message),
      hasLevel: out.level !== null,
      words: wordsToLevel(message),
    };
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
  readPrefix(start > 0 ? line.slice(start) : line, out);
  if (start > 0) {
    shift(out, start);
    if (out.hostFrom < 0) ({ hostFrom: out.hostFrom, hostTo: out.hostTo } = labelled);
    if (out.rankFrom < 0) ({ rankFrom: out.rankFrom, rankTo: out.rankTo } = labelled);
    if (out.writerFrom < 0) ({ writerFrom: out.writerFrom, writerTo: out.writerTo } = labelled);
  }
  if (out.stampFrom < 0) return;
  if (header.wordsToLevel >= 0 && out.level === null) skipToLevel(header.wordsToLevel, line, out);
  if (header.hasNumber) out.contentStart += length(NUMBER.exec(line.slice(out.contentStart)));
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

function wordsToLevel(text: string): number {
  let at = 0;
  for (let words = 0; words <= LEVEL_WORDS; words++) {
    if (levelAt(text, at)) return words;
    const space = text.indexOf(" ", at);
    if (space < 0) return -1;
    at = space;
    while (text[at] === " ") at++;
  }
  return -1;
}

function skipToLevel(words: number, line: string, out: LinePrefix): void {
  let at = out.contentStart;
  for (let i = 0; i < words; i++) {
    const space = line.indexOf(" ", at);
    if (space < 0) return;
    at = space;
    while (line[at] === " ") at++;
  }
  const found = levelAt(line, at);
  if (!found) return;
  out.level = found.level;
  out.contentStart = found.end + length(/^ *(?:[-|:] )? */.exec(line.slice(found.end)));
}

function skipFence(fence: string, line: string, out: LinePrefix): void {
  if (line.slice(0, out.contentStart).trimEnd().endsWith(fence.trim())) return;
  const at = line.indexOf(fence, out.contentStart);
  if (at < 0 || at > out.contentStart + FENCE_WITHIN) return;
  const words = line.slice(out.contentStart, at).trim().split(/ +/).length;
  if (words <= FENCE_WORDS) out.contentStart = at + fence.length;
}

/** Lines that all say the same thing have no header to find: "10 steps", "11 steps". */
function areVaried(rests: readonly string[]): boolean {
  const seen = new Set<string>();
  for (const rest of rests) seen.add(rest.replace(NUMBER, "").split(" ", 1)[0]!);
  return seen.size >= 5;
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

function length(m: RegExpExecArray | null): number {
  return m ? m[0].length : 0;
}
