/** Headers whose fields stand within brackets, keys or JSON rather than one after the other. */
import type { LinePrefix } from "./line-prefix.ts";
import { levelOf } from "./prefix-levels.ts";
import { matchAt, note, stampAt, sticky } from "./prefix-stamps.ts";
import { writer } from "./prefix-writers.ts";

/** "[NeMo W 2031-05-06 07:08:09 init:228]", "[2031-05-06 07:08:09 TP0]". */
const COMPOUND = sticky(
  String.raw`\[(?:[A-Za-z]\w{0,15} )?(?:([EWIFD]) )?(\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?: [^[\]]{1,80})?\]`,
);
const LETTERS: Readonly<Record<string, LinePrefix["level"]>> = {
  E: "error",
  W: "warning",
  I: "info",
  F: "fatal",
  D: "debug",
};
/** Ascend's "RUNTIME(4304,python3):2031-05-06-07:08:09.123.456 [engine.cc:12]". */
const ASCEND = sticky(String.raw`[A-Z][A-Z_]{1,20}\((\d{1,10}),[^()]{0,60}\):(?=\d{4}-)`);
/** logfmt: "time=… level=… msg=…". */
const TIME_KEY = sticky(String.raw`(?:time|ts|t|timestamp)="?(?=\d)`);
const LEVEL_KEY = sticky(String.raw`(?:level|lvl|severity)="?(\w{3,9})"?(?= |$)`);
const MESSAGE_KEY = sticky("(?:msg|message)=");
const JSON_LEVEL = /"(?:level|levelname|severity|lvl)" ?: ?"(\w{3,9})"/;
const JSON_TIME = /"(?:ts|time|timestamp|@timestamp|asctime)" ?: ?"?/;
/** Further in they belong to what the message is about. */
const JSON_WITHIN = 400;

export function compoundAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(COMPOUND, line, at);
  if (!m) return -1;
  note(out, "iso", at + m[0].indexOf(m[2]!));
  out.level ??= LETTERS[m[1] ?? ""] ?? null;
  return at + m[0].length;
}

/** Ends where the time begins. */
export function ascendAt(line: string, at: number, out: LinePrefix): number {
  const m = matchAt(ASCEND, line, at);
  return m ? writer(out, at + m[0].indexOf("(") + 1, m[1]!.length, at + m[0].length) : -1;
}

/** Where logfmt's message begins, -1 where it is none. */
export function logfmtAt(line: string, at: number, out: LinePrefix): number {
  let end = at;
  for (let keys = 0; keys < 3; keys++) {
    while (line[end] === " ") end++;
    const time = matchAt(TIME_KEY, line, end);
    if (time) {
      const from = end + time[0].length;
      const stampEnd = stampAt(line.replaceAll('"', " "), from, out);
      if (stampEnd < 0) return -1;
      end = line[stampEnd] === '"' ? stampEnd + 1 : stampEnd;
      continue;
    }
    const level = matchAt(LEVEL_KEY, line, end);
    if (level && levelOf(level[1]!) !== null) {
      out.level = levelOf(level[1]!);
      end += level[0].length;
      continue;
    }
    const message = matchAt(MESSAGE_KEY, line, end);
    return message && keys > 0 ? end + message[0].length : -1;
  }
  return -1;
}

const JSON_MESSAGE = /"(?:message|msg|log|line|textPayload|text|event)" ?: ?"/;
const JSON_HOST = /"(?:host|hostname|node|nodename|node_name|pod)" ?: ?"([\w.-]{1,120})"/;
const JSON_RANK = /"(?:rank|global_rank)" ?: ?"?(\d{1,7})\b/;

/** A line that is one JSON object: its time, level and writer are noted, and the message is the value of its key. */
export function readJson(line: string, at: number, out: LinePrefix): boolean {
  if (line[at] !== "{" || line[at + 1] !== '"') return false;
  const head = line.slice(at, at + JSON_WITHIN);
  const level = JSON_LEVEL.exec(head);
  if (level) out.level = levelOf(level[1]!);
  const time = JSON_TIME.exec(head);
  if (time) stampAt(line.replaceAll('"', " "), at + time.index + time[0].length, out);
  const host = JSON_HOST.exec(line);
  if (host) {
    out.hostFrom = host.index + host[0].lastIndexOf(host[1]!);
    out.hostTo = out.hostFrom + host[1]!.length;
  }
  const rank = JSON_RANK.exec(line);
  if (rank) {
    out.rankFrom = rank.index + rank[0].lastIndexOf(rank[1]!);
    out.rankTo = out.rankFrom + rank[1]!.length;
  }
  const message = JSON_MESSAGE.exec(line);
  if (message) out.contentStart = message.index + message[0].length;
  return true;
}
