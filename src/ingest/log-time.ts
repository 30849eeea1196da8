/**
 * Times at the head of log lines: ISO and its cousins (Python logging, NeMo, NCCL, Slurm, torchrun), US dates
 * (Hugging Face), `dmesg -T`, and the two that carry no year: glog (c10/util/Logging.cpp writes month*100+day,
 * so "[E603" is 3 June) and syslog. A time without a zone is read as UTC.
 */

/** The one time format that most lines have, read without regular expressions. */
const MAX_YEAR_AT = 60;
const SPACE = 32;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const POINT = 46;
const ZERO = 48;
const COLON = 58;
const LETTER_T = 84;
const LETTER_Z = 90;
const UNDERLINE = 95;

/** The day of the last time that was read: that of the next one, as a rule. */
let lastDay = -1;
let lastDayMs = 0;

export interface Stamp {
  /** Milliseconds since 1970; in the year 2000 where the line names no year. */
  readonly ms: number;
  readonly hasYear: boolean;
}

/** A time further in is part of the message, not of the line's head. */
const HEAD_CHARS = 160;

const FULL =
  /(?<!\d)(\d{4})[-/.](\d\d)[-/.](\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d(?!\d))?/;
const US = /(?<!\d)(\d\d)\/(\d\d)\/(\d{4}) (\d\d):(\d\d):(\d\d)/;
const KERNEL = /\b[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\b/;
const GLOG = /(?:^|[\s\]:[|])[EWIFD](\d{3,4}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?/;
const SYSLOG = /^(?:<\d{1,3}>)?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)\b/;
const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";
/** A leap year, so that 29 February survives until the year is known. */
const NO_YEAR = 2000;

export function parseStamp(line: string): Stamp | null {
  const common = commonStampMs(line);
  if (common > 0) return { ms: common, hasYear: true };
  const head = line.length > HEAD_CHARS ? line.slice(0, HEAD_CHARS) : line;
  let m = FULL.exec(head);
  if (m) {
    const ms = utc(m[1], m[2], m[3], m[4], m[5], m[6], m[7]);
    return ms === null ? null : { ms: ms - zoneMs(m[8]), hasYear: true };
  }
  m = GLOG.exec(head);
  if (m) {
    const date = Number(m[1]);
    return yearless(Math.floor(date / 100), date % 100, m[2], m[3], m[4], m[5]);
  }
  m = US.exec(head);
  if (m) return full(utc(m[3], m[1], m[2], m[4], m[5], m[6]));
  m = KERNEL.exec(head);
  if (m) return full(utc(m[6], String(month(m[1])), m[2], m[3], m[4], m[5]));
  m = SYSLOG.exec(head);
  if (m) return yearless(month(m[1]), Number(m[2]), m[3], m[4], m[5]);
  return null;
}

/** Whether a line may begin with a time; cheap enough to ask of every line. */
export function looksStamped(line: string): boolean {
  const year = line.indexOf("20");
  if (year >= 0 && year < 60) {
    const after = line.charCodeAt(year + 4);
    if (after === 45 || after === 47 || after === 46) return true; // - / .
  }
  for (let i = 0; i < 2; i++) {
    const level = line.charCodeAt(i);
    // E W I F D, then a digit: glog with or without its bracket.
    if (level === 69 || level === 87 || level === 73 || level === 70 || level === 68) {
      const digit = line.charCodeAt(i + 1);
      if (digit >= 48 && digit <= 57) return true;
    }
  }
  return line.length > 15 && line.charCodeAt(9) === 58 && SYSLOG.test(line);
}

/**
 * Milliseconds since 1970. A time without a year gets the one that brings it closest to `nearMs`, a full time
 * of the same file (a run may cross New Year); null where the file has none.
 */
export function resolveStamp(stamp: Stamp | null, nearMs: number | null): number | null {
  if (stamp === null) return null;
  if (stamp.hasYear) return stamp.ms;
  if (nearMs === null) return null;
  const at = new Date(stamp.ms);
  const near = new Date(nearMs).getUTCFullYear();
  let best = Number.NaN;
  for (const year of [near - 1, near, near + 1]) {
    at.setTime(stamp.ms);
    at.setUTCFullYear(year);
    const ms = at.getTime();
    if (!(Math.abs(ms - nearMs) >= Math.abs(best - nearMs))) best = ms;
  }
  return best;
}

function full(ms: number | null): Stamp | null {
  return ms === null ? null : { ms, hasYear: true };
}

function yearless(
  mon: number,
  day: number,
  h: string | undefined,
  min: string | undefined,
  s: string | undefined,
  fraction?: string,
): Stamp | null {
  const ms = utc(String(NO_YEAR), String(mon), String(day), h, min, s, fraction);
  return ms === null ? null : { ms, hasYear: false };
}

function month(name: string | undefined): number {
  const at = MONTHS.indexOf(name ?? "?");
  return at % 3 === 0 ? at / 3 + 1 : 0;
}

function utc(
  year: string | undefined,
  mon: string | undefined,
  day: string | undefined,
  h: string | undefined,
  min: string | undefined,
  s: string | undefined,
  fraction?: string,
): number | null {
  const m = Number(mon);
  const d = Number(day);
  if (!(m >= 1 && m <= 12 && d >= 1 && d <= 31)) return null;
  if (Number(h) > 24 || Number(min) > 59 || Number(s) > 60) return null;
  const whole = Date.UTC(Number(year), m - 1, d, Number(h), Number(min), Number(s));
  // Milliseconds only: a double holds no more of the fraction reliably, and logs are not that exact.
  return whole + (fraction ? Math.floor(Number(`0.${fraction}`) * 1000) : 0);
}

function zoneMs(zone: string | undefined): number {
  if (!zone || zone === "Z") return 0;
  const sign = zone.startsWith("-") ? -1 : 1;
  return sign * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))) * 60_000;
}

/**
 * "2026-11-15 00:41:37,409" without a zone, the time of nearly all lines, digit by digit: every iteration line
 * comes here, and regular expressions take several times as long. NaN for all else.
 */
function commonStampMs(line: string): number {
  const at = line.indexOf("20");
  if (at < 0 || at > MAX_YEAR_AT || isDigit(line.charCodeAt(at - 1))) return NaN;
  const separator = line.charCodeAt(at + 10);
  if (separator !== SPACE && separator !== LETTER_T && separator !== UNDERLINE) return NaN;
  if (line.charCodeAt(at + 4) !== MINUS || line.charCodeAt(at + 7) !== MINUS) return NaN;
  if (line.charCodeAt(at + 13) !== COLON || line.charCodeAt(at + 16) !== COLON) return NaN;
  const year = 2000 + twoDigits(line, at + 2);
  const mon = twoDigits(line, at + 5);
  const day = twoDigits(line, at + 8);
  const h = twoDigits(line, at + 11);
  const min = twoDigits(line, at + 14);
  const s = twoDigits(line, at + 17);
  if (!(year > 0 && mon >= 1 && mon <= 12 && day >= 1 && day <= 31)) return NaN;
  if (!(h <= 24 && min <= 59 && s <= 60)) return NaN;
  let end = at + 19;
  let ms = 0;
  const mark = line.charCodeAt(end);
  if ((mark === POINT || mark === COMMA) && isDigit(line.charCodeAt(end + 1))) {
    let worth = 100;
    for (end++; isDigit(line.charCodeAt(end)); end++) {
      ms += worth * (line.charCodeAt(end) - ZERO);
      worth = Math.floor(worth / 10);
    }
  }
  const next = line.charCodeAt(end);
  if (next === PLUS || next === MINUS || next === LETTER_Z) return NaN;
  const key = (year * 100 + mon) * 100 + day;
  if (key !== lastDay) {
    lastDay = key;
    lastDayMs = Date.UTC(year, mon - 1, day);
  }
  return lastDayMs + ((h * 60 + min) * 60 + s) * 1000 + ms;
}

/** NaN where they are no digits. */
function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at);
  const ones = text.charCodeAt(at + 1);
  return isDigit(tens) && isDigit(ones) ? (tens - ZERO) * 10 + (ones - ZERO) : NaN;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= ZERO + 9;
}
