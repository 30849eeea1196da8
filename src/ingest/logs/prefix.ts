/**
 * Finds what comes before a line's message without knowing the format: a line's head is a row of fields (labels of
 * launchers, a time, a level, a host, a component), and each has a form of its own. Fields that could also be the first
 * words of a message count only behind a time or a level, because a message that loses words is worse than a header
 * that stays. Called once for every new form of a line, not for every line.
 */
import type { LinePrefix, StampKind } from "./line-prefix.ts";
import {
  componentAt,
  facilityAt,
  fencedAt,
  glogAt,
  hostProgramAt,
  isHeaderUpTo,
  programLevelAt,
  spaces,
  stampAhead,
} from "./prefix-fields.ts";
import { levelAhead, levelAt, lowerLevelAt } from "./prefix-levels.ts";
import { ascendAt, compoundAt, logfmtAt, readJson } from "./prefix-structured.ts";
import { matchAt, note, stampAt, sticky } from "./prefix-stamps.ts";
import { host, labelAt, ncclAt, rankAt } from "./prefix-writers.ts";

// eslint-disable-next-line no-control-regex
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** tqdm's bar, to which a logger's header is glued when both write to one terminal. */
const BAR = sticky(
  String.raw`[^|[\]]{0,60}\d{1,3}%\|[^|]{0,200}\| *[^[\]|]{0,40}\[[^\]]{0,80}\]\s*(?=\S)`,
);
/** DeepSpeed's log_dist names the global rank behind its place; c10d's "[Rank 3]" is one of a group. */
const LOGGER_RANK = sticky(String.raw`\[Rank (\d{1,7})\]`);
const SEPARATOR = sticky(String.raw`[ \t]*(?:(-{1,3}|\||>>|>|:|,)(?=\s|$)|(\|))?[ \t]*`);
const LAST_SEPARATOR = sticky(
  String.raw`(?:[ \t]*(?:-|\||>>)(?=[ \t]|$)|\||[ \t]+:(?= )|:(?= |$))? ?`,
);
const HOSTISH = /^[A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*$/;
const MOST_FIELDS = 24;
/** A header is no longer than this; levels further in belong to the message. */
const LEVEL_WITHIN = 120;

export function newPrefix(): LinePrefix {
  const out = {} as LinePrefix;
  clear(out);
  return out;
}

export function readPrefix(line: string, out: LinePrefix): void {
  clear(out);
  if (line.includes("\u001b")) readColoured(line, out, read);
  else read(line, out);
}

function clear(out: LinePrefix): void {
  out.contentStart = 0;
  out.hostFrom = out.hostTo = out.rankFrom = out.rankTo = out.writerFrom = out.writerTo = -1;
  out.stampKind = "";
  out.stampFrom = -1;
  out.level = null;
}

function read(line: string, out: LinePrefix): void {
  let at = 0;
  for (let i = 0; i < 4; i++) {
    const end = labelAt(line, at, out);
    if (end < 0) break;
    at = end + (line[end] === " " ? 1 : 0);
    out.contentStart = at;
  }
  if (readJson(line, at, out)) return;
  const message = logfmtAt(line, at, out);
  if (message >= 0) {
    out.contentStart = message;
    return;
  }
  const bar = matchAt(BAR, line, at);
  if (bar) {
    // The bar is a message of its own unless a header follows.
    const before = out.contentStart;
    const after = at + bar[0].length;
    readFields(line, after, out);
    if (out.stampKind !== "" || out.level !== null) return;
    out.contentStart = before;
    return;
  }
  readFields(line, at, out);
}

/** What the fields so far make likely; `isDone`: only a message can follow. */
interface State {
  isStamped: boolean;
  isLevelled: boolean;
  isKernel: boolean;
  isDone: boolean;
  /** syslog's: its lines have no column for a level. */
  hasProgram: boolean;
  isPadded: boolean;
}

function readFields(line: string, start: number, out: LinePrefix): void {
  const state: State = {
    isStamped: false,
    isLevelled: false,
    isKernel: false,
    isDone: false,
    hasProgram: false,
    isPadded: false,
  };
  let at = start;
  let count = 0;
  let fence = "";
  while (count < MOST_FIELDS) {
    let from = at;
    if (count > 0) {
      const separator = matchAt(SEPARATOR, line, at)!;
      from = at + separator[0].length;
      fence = separator[1] ?? separator[2] ?? "";
    } else if (spaces(line, at) > 0) {
      // What is indented is a message, but for padded levels and bars.
      from = at + spaces(line, at);
      if (line[from] !== "[") break;
    }
    if (from >= line.length) break;
    const wasPadded = state.isPadded;
    state.isPadded = false;
    const end = fieldAt(line, from, fence, state, out);
    if (end < 0) {
      state.isPadded = wasPadded;
      break;
    }
    at = end;
    count++;
  }
  if (count === 0) return;
  const last = matchAt(LAST_SEPARATOR, line, at)!;
  at += last[0].length;
  // Levels are padded to one width; other indentation is the message's own.
  if (state.isPadded) at += spaces(line, at);
  out.contentStart = at;
}

/** Where the field at `at` ends, or -1. */
function fieldAt(line: string, at: number, fence: string, state: State, out: LinePrefix): number {
  let end = ncclAt(line, at, out);
  if (end >= 0) {
    // What follows NCCL's level is its message: "NET/IB : …".
    if (line.slice(at, end).includes(" NCCL ") || line.startsWith("NCCL ", at))
      state.isLevelled = state.isDone = true;
    return end;
  }
  end = glogAt(line, at, out);
  if (end >= 0) {
    state.isStamped = state.isLevelled = state.isDone = true;
    return end;
  }
  if (state.isDone) return rankAt(line, at, out);
  end = state.isStamped ? -1 : compoundAt(line, at, out);
  if (end >= 0) {
    state.isStamped = true;
    state.isLevelled ||= out.level !== null;
    return end;
  }
  end = ascendAt(line, at, out);
  if (end >= 0) return end;
  end = stampFieldAt(line, at, state, out);
  if (end >= 0) return end;
  if (state.isKernel) return callerAt(line, at);
  end = rankAt(line, at, out);
  if (end >= 0) return end;
  end = levelFieldAt(line, at, state, out);
  if (end >= 0) return end;
  const isHeader = state.isStamped || state.isLevelled;
  if (!state.isStamped) {
    end = facilityAt(line, at, out);
    if (end < 0 && !isHeader) end = programLevelAt(line, at);
    if (end >= 0) return end;
    const stamp = stampAhead(line, at);
    if (stamp >= 0) return skipTo(line, at, stamp, out);
  } else if (out.stampKind === "epoch" || out.stampKind === "") {
    const stamp = stampAhead(line, at);
    if (stamp >= 0) return skipTo(line, at, stamp, out);
  }
  if (!isHeader) return -1;
  if (state.isStamped && !state.isLevelled && !state.hasProgram) {
    const level = levelAhead(line, at, LEVEL_WITHIN);
    if (level > at && isHeaderUpTo(line, at, level)) return levelStart(line, level);
  }
  if (state.hasProgram) return -1;
  end = loggerRankAt(line, at, out);
  if (end >= 0) return end;
  end = componentAt(line, at, state.isLevelled);
  if (end >= 0) return end;
  return fence !== "" || state.isStamped ? fencedAt(line, at, fence) : -1;
}

const RELAYED = /T[\d:.]+(?:Z|[+-]\d\d:\d\d)$/;
const scratch = newPrefix();

function stampFieldAt(line: string, at: number, state: State, out: LinePrefix): number {
  // Behind a time and a level only the message can have one.
  if (state.isStamped && state.isLevelled) return -1;
  scratch.stampKind = "";
  const end = stampAt(line, at, scratch);
  if (end < 0) return -1;
  const kind = scratch.stampKind as StampKind;
  // The second time of day is what the message is about.
  if (state.isStamped && kind === "clock" && out.stampKind === "clock") return -1;
  state.isStamped = true;
  note(out, kind, scratch.stampFrom);
  if (kind === "uptime" || (kind === "kernel" && line[at] === "[")) state.isKernel = true;
  // rsyslog writes the zone, programs as a rule do not.
  const isRelayed = kind === "iso" && RELAYED.test(line.slice(at, end));
  const behind =
    line[end] === " " ? hostProgramAt(line, end, kind === "syslog", isRelayed, out) : null;
  if (!behind) return end;
  state.hasProgram = behind.hasProgram;
  state.isKernel ||= behind.isKernel;
  return behind.end;
}

function levelFieldAt(line: string, at: number, state: State, out: LinePrefix): number {
  if (state.isLevelled) return -1;
  const isHeader = state.isStamped || out.writerFrom >= 0 || at > 0;
  const found = levelAt(line, at) ?? (isHeader ? lowerLevelAt(line, at) : null);
  if (!found) return -1;
  const isBeforeStamp = () => stampAt(line, found.end + spaces(line, found.end), newPrefix()) > 0;
  const isPlaced = state.isStamped && !state.hasProgram;
  if (!found.isField && !isPlaced && !isBeforeStamp()) {
    out.level ??= found.level;
    return -1;
  }
  out.level = found.level;
  state.isLevelled = state.isPadded = true;
  return found.end;
}

/** printk's caller: "[  T123]", "[ C1]". */
function callerAt(line: string, at: number): number {
  const m = matchAt(CALLER, line, at);
  return m ? at + m[0].length : -1;
}
const CALLER = sticky(String.raw`\[ *[TC]\d{1,7}\]`);

function loggerRankAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(LOGGER_RANK, line, at);
  if (!m) return -1;
  if (out.rankFrom < 0) {
    out.rankFrom = at + 6;
    out.rankTo = out.rankFrom + m[1]!.length;
  }
  return at + m[0].length;
}

/** The words before a time: the one that looks like a machine's name is the host. */
function skipTo(line: string, at: number, stamp: number, out: LinePrefix): number {
  let from = at;
  for (const word of line.slice(at, stamp).trim().split(/ +/)) {
    from = line.indexOf(word, from);
    if (HOSTISH.test(word) && !/\.log\b/.test(word)) host(out, from, word.length, 0);
  }
  return stamp;
}

/** Before the bracket, too, where the level stands in one. */
function levelStart(line: string, level: number): number {
  return /[[<(]/.test(line[level - 1] ?? "") ? level - 1 : level;
}

/**
 * Lines with a terminal's colours.
 * Colours are taken out for reading, and every place is put back to where it stands in the line.
 */
function readColoured(
  line: string,
  out: LinePrefix,
  read: (plain: string, out: LinePrefix) => void,
): void {
  const places: number[] = [];
  let plain = "";
  let from = 0;
  for (const m of line.matchAll(ANSI)) {
    for (let i = from; i < m.index; i++) places.push(i);
    plain += line.slice(from, m.index);
    from = m.index + m[0].length;
  }
  for (let i = from; i < line.length; i++) places.push(i);
  plain += line.slice(from);
  read(plain, out);
  if (out.contentStart > 0 || places[0] !== 0)
    out.contentStart = places[out.contentStart] ?? line.length;
  out.hostFrom = places[out.hostFrom] ?? -1;
  out.hostTo = (places[out.hostTo - 1] ?? -2) + 1;
  out.rankFrom = places[out.rankFrom] ?? -1;
  out.rankTo = (places[out.rankTo - 1] ?? -2) + 1;
  out.writerFrom = places[out.writerFrom] ?? -1;
  out.writerTo = (places[out.writerTo - 1] ?? -2) + 1;
  out.stampFrom = places[out.stampFrom] ?? -1;
}
