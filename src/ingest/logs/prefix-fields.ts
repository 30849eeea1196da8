/**
 * The other fields of a header: glog's, syslog's host and program, components, places in the source, threads. All of
 * them look like words of a message, too, so each is asked for only behind a time or a level.
 */
import type { LinePrefix, StampKind } from "./line-prefix.ts";
import { levelOf } from "./prefix-levels.ts";
import { matchAt, note, stampAt, sticky } from "./prefix-stamps.ts";
import { host, writer } from "./prefix-writers.ts";

const GLOG = sticky(
  String.raw`\[?(([EWIFD])\d{3,4} \d\d:\d\d:\d+(?:\.\d{1,9})?) +(?:(\d{1,10}) +)?\S{1,160}:\d{1,7}\]`,
);
/** "[W socket.cpp:601]": the same before it had a time. */
const GLOG_PLACE = sticky(String.raw`\[([EWIFD]) [\w./-]{1,80}:\d{1,6}\]`);
const GLOG_LEVELS: Readonly<Record<string, LinePrefix["level"]>> = {
  E: "error",
  W: "warning",
  I: "info",
  F: "fatal",
  D: "debug",
};
/** dmesg -x: "kern  :warn  : ". */
const FACILITY = sticky(
  String.raw`(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *:(\w{3,6}) *: ?`,
);
const PROGRAM = String.raw`[A-Za-z_/][\w./()@+:-]{0,80}?`;
const HOST_PROGRAM = sticky(
  String.raw` *([A-Za-z0-9][\w.:/#@-]{0,120}) (${PROGRAM}(?: v?\d[\w.]{0,20})?)(\[\d{1,10}\])?:(?= |$)`,
);
const HOST_ONLY = sticky(String.raw` *((?=\S*[\d@-])[A-Za-z0-9][\w.@/-]{0,120})(?= )`);
const PROGRAM_ONLY = sticky(String.raw` *(${PROGRAM})\[(\d{1,10})\]:(?= |$)`);
/** "slurmstepd: error: ", "srun: error: ": a program's name and a level. */
const PROGRAM_LEVEL = sticky(
  String.raw`[a-z][\w.-]{1,40}: (?=(?:error|warning|fatal|info|debug\d?|err|warn): )`,
);
/** Kubernetes' runtime: the stream and whether the line is whole. */
const STREAM = sticky(String.raw`std(?:out|err) [FP](?= |$)`);
const PLACE = String.raw`[\w./<>$-]{1,120}(?::[\w.<>$]{1,80})?:\d{1,7}(?::[\w.<>]{1,80}|\([\w.<>]{0,80}\))?`;
const SOURCE_PLACE = sticky(
  String.raw`(?=[\w./-]*\.(?:py|pyx|cc|cpp|cxx|cu|c|h|hpp|go|rs|java|scala)\b|[\w.<>]+:[\w.<>]+:\d)${PLACE}(?:\]|:(?= )|(?= +[-|] )|(?= - ))`,
);
const NAME = String.raw`[A-Za-z_][\w$-]*`;
/** A name that is no English word: with points, "$", "::", underlines or two humps. */
const COMPONENT = sticky(
  String.raw`((?:${NAME}(?:(?:\.|::|/)${NAME})+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|${NAME}\$${NAME}|[a-z]+(?:_[a-z0-9]+)+)(?:\[\d{1,10}\])?) {0,12}:(?= |$)`,
);
const IS_FAILURE = /(?:Error|Exception|Warning|Interrupt|Exit|Failure|Failed|Abort|Fault)$/;
const BEFORE_BRACKET = sticky(String.raw`${NAME}(?:\.${NAME})+(?= \[)`);
/** A program or logger between dashes or bars: " - trainer - ". */
const BETWEEN = sticky(String.raw`([A-Za-z_<][\w.:$<>/@-]{0,80})(?= +(?:-|\||---) )`);
const BAR_FIELD = sticky(String.raw`([\w.:$@/-]{1,80})(?= *\|)`);
const SPRING = sticky(String.raw`\d{1,10} ---(?= )`);
/** A word that belongs to a header rather than to a sentence. */
const HEADERISH =
  /^(?:[-|:]|[A-Z][A-Z0-9_]+|root|main|__main__|(?=\S*[\d._$@/])[\w.:@/#*$<>()-]+|\[[^\s[\]]{0,80}\]:?)$/;
const ID =
  /^(?:-|\d+|(?=.*\d)[0-9a-f]{6,}|[A-Za-z]{1,12}-[0-9a-f]{4,}(?:-[0-9a-f]+)*|[\w.]*[-#]\d+|main|Main(?:Thread|Process)|(?:pid|tid|thread|process|worker)[ :=#-]?\d+|[TC]\d+|[\w./:$-]*@\d+)$/i;
const scratch = { stampKind: "", stampFrom: -1 } as LinePrefix;

export function glogAt(line: string, at: number, out: LinePrefix): number {
  let m = matchAt(GLOG, line, at);
  if (m) {
    const from = at + m[0].indexOf(m[1]!);
    // Abseil before its clock is set up writes the epoch's seconds behind "00:00:".
    const isEpoch = /:\d{10}/.test(m[1]!);
    note(out, isEpoch ? "epoch" : "glog", isEpoch ? from + m[1]!.lastIndexOf(":") + 1 : from);
    out.level ??= GLOG_LEVELS[m[2]!] ?? null;
    const pid = m[3];
    if (pid !== undefined) writer(out, at + m[0].indexOf(` ${pid} `) + 1, pid.length, 0);
    return at + m[0].length;
  }
  m = matchAt(GLOG_PLACE, line, at);
  if (!m) return -1;
  out.level ??= GLOG_LEVELS[m[1]!] ?? null;
  return at + m[0].length;
}

export function facilityAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(FACILITY, line, at);
  if (!m) return -1;
  out.level ??= levelOf(m[1]!);
  return at + m[0].length;
}

/** syslog's " host prog[pid]:" behind the time, which `isRelayed` in RFC 3339's way; `isKernel` tells that the kernel wrote it. */
export function hostProgramAt(
  line: string,
  at: number,
  isSyslog: boolean,
  isRelayed: boolean,
  out: LinePrefix,
): { end: number; isKernel: boolean; hasProgram: boolean } | null {
  const m = matchAt(HOST_PROGRAM, line, at);
  if (m) {
    const [all, name, program, pid] = m;
    const isKernel = program === "kernel";
    const looksHost = /\d/.test(name!) || /[.-]/.test(name!);
    const isSure = isSyslog || isKernel || ((pid !== undefined || isRelayed) && looksHost);
    if (isSure && levelOf(name!) === null && levelOf(program!) === null) {
      const slash = name!.indexOf("/");
      host(out, at + all.indexOf(name!), slash > 0 ? slash : name!.length, 0);
      if (pid !== undefined) writer(out, at + all.lastIndexOf(pid) + 1, pid.length - 2, 0);
      return { end: at + all.length, isKernel, hasProgram: true };
    }
  }
  const only = matchAt(PROGRAM_ONLY, line, at);
  if (!only) return isSyslog ? hostOnlyAt(line, at, out) : null;
  writer(out, at + only[0].lastIndexOf("[") + 1, only[2]!.length, 0);
  return { end: at + only[0].length, isKernel: false, hasProgram: true };
}

/** syslog without a program: the host, where it looks like one. */
function hostOnlyAt(line: string, at: number, out: LinePrefix) {
  const m = matchAt(HOST_ONLY, line, at);
  if (!m) return null;
  host(out, at + m[0].length - m[1]!.length, m[1]!.length, 0);
  return { end: at + m[0].length, isKernel: false, hasProgram: true };
}

export function programLevelAt(line: string, at: number): number {
  const m = matchAt(PROGRAM_LEVEL, line, at);
  return m ? at + m[0].length : -1;
}

/** Where a component, place, thread or id ends; -1 where none stands. */
export function componentAt(line: string, at: number, isLevelled: boolean): number {
  if (line[at] === "[") return idBracketAt(line, at, isLevelled);
  let m = matchAt(STREAM, line, at) ?? matchAt(SOURCE_PLACE, line, at) ?? matchAt(SPRING, line, at);
  if (m) return at + m[0].length;
  m = matchAt(COMPONENT, line, at);
  if (m && !IS_FAILURE.test(m[1]!)) {
    const rest = line.slice(at + m[0].length).trim();
    // "lr.scale: 0.1" is a value and its name.
    if (rest.includes(" ")) return at + m[0].length;
  }
  m = isLevelled ? matchAt(BEFORE_BRACKET, line, at) : null;
  if (m && idBracketAt(line, at + m[0].length + 1, true) > 0) return at + m[0].length;
  return -1;
}

/** A name that dashes or bars fence off: `fence` is what stood before it. */
export function fencedAt(line: string, at: number, fence: string): number {
  if (fence === "|") {
    const m = matchAt(BAR_FIELD, line, at);
    return m ? at + m[0].length : -1;
  }
  const m = matchAt(BETWEEN, line, at);
  return m ? at + m[0].length : -1;
}

/** Where a time stands a few words further in that do not belong to a sentence; -1 for nowhere. */
export function stampAhead(line: string, at: number): number {
  let from = at;
  for (let words = 0; words < 4; words++) {
    const end = wordEnd(line, from);
    const word = end < 0 ? "" : line.slice(from, end);
    if (!HEADERISH.test(word) || levelOf(word) !== null) return -1;
    from = end + spaces(line, end);
    scratch.stampKind = "";
    const stampEnd = stampAt(line, from, scratch);
    const kind = scratch.stampKind as StampKind;
    // A time of day may well stand in a message.
    if (stampEnd - from >= 10 && kind !== "clock" && kind !== "uptime") return from;
  }
  return -1;
}

/** Whether all words from `at` to the level at `to` are fields. */
export function isHeaderUpTo(line: string, at: number, to: number): boolean {
  const words = line.slice(at, to).split(/[\s[<(]+/);
  let count = 0;
  for (const word of words) {
    if (word === "" || word === "-" || word === "|" || word === ":") continue;
    if (++count > 5 || !HEADERISH.test(word.replace(/[\])>:]+$/, ""))) return false;
  }
  return true;
}

export function spaces(line: string, at: number): number {
  let i = at;
  while (line.charCodeAt(i) === 32 || line.charCodeAt(i) === 9) i++;
  return i - at;
}

function wordEnd(line: string, at: number): number {
  const end = line.indexOf(" ", at);
  return end > at && end - at <= 80 ? end : -1;
}

/** "[req-1f… 88 - -]", "[main:Factory@101]", "[loss_scaler.py:181:update]", "[T123]", "[MainThread]". */
function idBracketAt(line: string, at: number, isLevelled: boolean): number {
  let depth = 0;
  let end = at;
  for (; end < line.length && end < at + 300; end++) {
    if (line[end] === "[") depth++;
    else if (line[end] === "]" && --depth === 0) break;
  }
  if (depth !== 0 || line[end] !== "]") return -1;
  const inside = line.slice(at + 1, end).trim();
  if (/^\S?[\s:]*$/.test(line.slice(end + 1))) return -1;
  // Java's loggers: what a dash follows is a field, whatever is in it.
  if (isLevelled && /^ +- /.test(line.slice(end + 1, end + 8))) return end + 1;
  const m = matchAt(IN_BRACKET, inside, 0);
  if (m && m[0].length === inside.length) return end + 1;
  const words = inside.split(/[\s,]+/);
  if (words.length > 8 || inside === "") return -1;
  return words.every((word) => ID.test(word)) ? end + 1 : -1;
}

const IN_BRACKET = sticky(
  String.raw`(?:[\w./<>$-]{1,120}\.(?:py|pyx|cc|cpp|cxx|cu|c|h|hpp|go|rs|java|scala)|[\w.]+)(?::[\w.<>]{1,80}){0,2}:\d{1,7}(?::[\w.<>]{1,80})?`,
);
