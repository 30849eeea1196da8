/**
 * What a file's lines say together where one alone says nothing: a column that nearly all of them have is a header's,
 * even where each could be the beginning of a message.
 */
import type { LinePrefix } from "./line-prefix.ts";
import { levelAt } from "./prefix-levels.ts";
import { newPrefix, readPrefix } from "./prefix.ts";

export interface Header {
  /** Labels before every line: srun's task, padded to one width, or any host of pdsh. */
  readonly label: "task" | "host" | "";
  /** Words between the time and a plain level, the level itself not counted; -1 where there is none. */
  readonly wordsToLevel: number;
  /** Whether a number (a process) follows the time in every line. */
  readonly hasNumber: boolean;
  /** What separates the header from the message in every line, within its first words. */
  readonly fence: "" | " - " | " | ";
}

const FEWEST = 20;
const NEARLY_ALL = 0.9;
const MOST = 0.8;
const TASK = /^ {0,6}(\d{1,6}): /;
const HOST = /^([A-Za-z][\w.-]{1,80}): /;
const NUMBER = /^\d{1,10} +(?=\S)/;
const LEVEL_WORDS = 4;
/** Characters within which a fence is looked for, and the words that may stand before it. */
const FENCE_WITHIN = 60;
const FENCE_WORDS = 3;

/** Null where the single lines say all there is. */
export function headerOf(sample: readonly string[]): Header | null {
  const lines = sample.filter((line) => line.trim() !== "");
  if (lines.length < FEWEST) return null;
  const label = labelOf(lines);
  const out = newPrefix();
  const rests: string[] = [];
  const levels = new Float64Array(LEVEL_WORDS + 1);
  let dashes = 0;
  let bars = 0;
  let numbers = 0;
  let unlevelled = 0;
  for (const line of lines) {
    const start = skipLabel(line, label, out);
    readPrefix(line.slice(start), out);
    if (out.stampFrom < 0) continue;
    const head = line.slice(start, start + out.contentStart);
    const rest = line.slice(start + out.contentStart);
    rests.push(rest);
    if (head.endsWith(" - ")) dashes++;
    if (/\| ?$/.test(head)) bars++;
    if (NUMBER.test(rest)) numbers++;
    if (out.level === null) {
      unlevelled++;
      const words = wordsToLevel(rest);
      if (words >= 0) levels[words]!++;
    }
  }
  const least = Math.max(FEWEST, lines.length / 2);
  const isStamped = rests.length >= least;
  const best = levels.indexOf(Math.max(...levels));
  const header: Header = {
    label,
    wordsToLevel:
      isStamped && unlevelled >= least && levels[best]! >= NEARLY_ALL * unlevelled ? best : -1,
    hasNumber: isStamped && numbers >= 0.98 * rests.length && areVaried(rests),
    fence:
      isStamped && dashes >= MOST * rests.length
        ? " - "
        : isStamped && bars >= MOST * rests.length
          ? " | "
          : "",
  };
  const isPlain = label === "" && header.wordsToLevel < 0 && !header.hasNumber;
  return isPlain && header.fence === "" ? null : header;
}

/** Reads lines of one file; what the sample shows of it helps where a line alone says too little. */
export function prefixReader(
  sample: readonly string[] = [],
): (line: string, out: LinePrefix) => void {
  const header = headerOf(sample);
  if (!header) return readPrefix;
  return (line, out) => readWith(header, line, out);
}

function readWith(header: Header, line: string, out: LinePrefix): void {
  const labelled = newPrefix();
  const start = skipLabel(line, header.label, labelled);
  if (start > 0) {
    readPrefix(line.slice(start), out);
    shift(out, start);
    if (out.hostFrom < 0) {
      out.hostFrom = labelled.hostFrom;
      out.hostTo = labelled.hostTo;
    }
    if (out.writerFrom < 0) {
      out.writerFrom = labelled.writerFrom;
      out.writerTo = labelled.writerTo;
    }
  } else readPrefix(line, out);
  if (out.stampFrom < 0) return;
  if (header.wordsToLevel >= 0 && out.level === null) skipToLevel(header.wordsToLevel, line, out);
  if (header.hasNumber) out.contentStart += length(NUMBER.exec(line.slice(out.contentStart)));
  if (header.fence !== "") skipFence(header.fence, line, out);
}

/** Where the label ends, 0 for none; whose it is goes into `out`. */
function skipLabel(line: string, label: Header["label"], out: LinePrefix): number {
  if (label === "") return 0;
  const m = (label === "task" ? TASK : HOST).exec(line);
  if (!m) return 0;
  const from = m[0].indexOf(m[1]!);
  out.writerFrom = out.writerTo = out.hostFrom = out.hostTo = -1;
  if (label === "task") {
    out.writerFrom = from;
    out.writerTo = from + m[1]!.length;
  } else {
    out.hostFrom = from;
    out.hostTo = from + m[1]!.length;
  }
  return m[0].length;
}

function labelOf(lines: readonly string[]): Header["label"] {
  for (const [label, form] of [
    ["task", TASK],
    ["host", HOST],
  ] as const) {
    const names = new Map<string, number>();
    let count = 0;
    for (const line of lines) {
      const name = form.exec(line)?.[1];
      if (name === undefined) continue;
      count++;
      names.set(name, (names.get(name) ?? 0) + 1);
    }
    // Several writers with several lines each: numbered or named items come once.
    const isFew = names.size >= 2 && names.size <= count / 3;
    if (count >= NEARLY_ALL * lines.length && isFew && !(label === "host" && areWords(names)))
      return label;
  }
  return "";
}

/** Whether the names are words such as "Epoch" and "INFO" rather than machines. */
function areWords(names: ReadonlyMap<string, number>): boolean {
  let withDigit = 0;
  for (const name of names.keys()) if (/\d/.test(name)) withDigit++;
  return withDigit < names.size * MOST;
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
