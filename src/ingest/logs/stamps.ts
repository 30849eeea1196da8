/**
 * Times out of bytes, by the rules of ingest/log-time.ts. A time without a zone is read as UTC. Those without a year (or
 * without a day) are put as close as possible to the time before them, the first to a full time of the same file or of
 * the job; where there is none, the first gets the last year that does not put it behind the file's last change.
 * Where nothing says so, times are relative: seconds since boot, or since midnight of an unknown day.
 */
import type { StampKind } from "./line-prefix.ts";

export const STAMP_KINDS: readonly StampKind[] = [
  "",
  "iso",
  "us",
  "glog",
  "syslog",
  "kernel",
  "uptime",
  "epoch",
  "clock",
];
const ISO = STAMP_KINDS.indexOf("iso");
const US = STAMP_KINDS.indexOf("us");
const GLOG = STAMP_KINDS.indexOf("glog");
const SYSLOG = STAMP_KINDS.indexOf("syslog");
const KERNEL = STAMP_KINDS.indexOf("kernel");
const UPTIME = STAMP_KINDS.indexOf("uptime");
const EPOCH = STAMP_KINDS.indexOf("epoch");
const CLOCK = STAMP_KINDS.indexOf("clock");

/** Earlier times (March 1973) are relative ones. */
export const FIRST_ABSOLUTE_MS = 1e11;
/** Where nothing tells the year. A leap year, so that 29 February exists. */
const ASSUMED_YEAR = 2000;
const DAY_MS = 86_400_000;
/** A time without a zone may be this much later than the file's last change, which is in UTC. */
const ZONE_MS = DAY_MS;
/** Years between two 29 Februaries, at most. */
const LEAP_YEARS = 8;
const ZERO = 48;
const MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec";
/** A full time anywhere in a file's head. */
const FULL = /(?<!\d)(20\d\d)[-/](0[1-9]|1[0-2])[-/]([0-3]\d)[T _-](\d\d):(\d\d):(\d\d)/;
const FULL_KERNEL = /\b([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (20\d\d)\b/;

/** A time near which the times of this text are; NaN where it has no full one. */
export function nearTime(text: string): number {
  const m = FULL.exec(text);
  if (m) return Date.UTC(+m[1]!, +m[2]! - 1, +m[3]!, +m[4]!, +m[5]!, +m[6]!);
  const k = FULL_KERNEL.exec(text);
  const month = k ? MONTHS.indexOf(k[1]!.toLowerCase()) : -1;
  if (!k || month < 0 || month % 3 !== 0) return NaN;
  return Date.UTC(+k[6]!, month / 3, +k[2]!, +k[3]!, +k[4]!, +k[5]!);
}

/** Reads the times of one file, in the order of its lines. */
export class StampReader {
  /** The last time, or one near the first; NaN for none. */
  #nearMs: number;
  readonly #latestMs: number;
  #isDated = false;
  #at = 0;
  #dayKey = -1;
  #dayMs = 0;

  /** `latestMs`: when the file was last written to; NaN for unknown. */
  constructor(nearMs: number, latestMs = NaN) {
    this.#nearMs = nearMs;
    this.#latestMs = latestMs;
  }

  /** Milliseconds since 1970; NaN where no time stands there. `kind`: index into STAMP_KINDS. */
  read(buf: Uint8Array, from: number, to: number, kind: number): number {
    this.#at = from;
    let ms = NaN;
    if (kind === ISO) ms = this.#iso(buf, to);
    else if (kind === GLOG) ms = this.#glog(buf, to);
    else if (kind === SYSLOG) ms = this.#named(buf, to, false);
    else if (kind === KERNEL) ms = this.#named(buf, to, true);
    else if (kind === US) ms = this.#us(buf, to);
    else if (kind === EPOCH) ms = this.#epoch(buf, to);
    else if (kind === CLOCK) ms = this.#dated(this.#clock(buf, to));
    else if (kind === UPTIME) return this.#isDated ? NaN : this.#uptime(buf, to);
    if (ms >= FIRST_ABSOLUTE_MS) {
      this.#nearMs = ms;
      this.#isDated = true;
    } else if (ms >= 0) this.#nearMs = ms;
    return ms;
  }

  #iso(buf: Uint8Array, to: number): number {
    const year = this.#digits(buf, to, 4);
    this.#at++;
    const month = this.#digits(buf, to, 2);
    this.#at++;
    const day = this.#digits(buf, to, 2);
    this.#at++;
    const clock = this.#clock(buf, to);
    return this.#day(year, month, day) + clock - this.#zone(buf, to);
  }

  /** "06/07/2023 22:22:34", "07/06/23 …" the other way round where the first can be no month. */
  #us(buf: Uint8Array, to: number): number {
    const first = this.#digits(buf, to, 2);
    this.#at++;
    const second = this.#digits(buf, to, 2);
    this.#at++;
    const year = this.#digits(buf, to, 4);
    while (this.#at < to && (buf[this.#at] === 32 || buf[this.#at] === 44)) this.#at++;
    let clock = this.#clock(buf, to);
    const half = (buf[this.#at + 1] ?? 0) | 32;
    if (buf[this.#at] === 32 && ((buf[this.#at + 2] ?? 0) | 32) === 109) {
      if (half === 112 && clock < DAY_MS / 2) clock += DAY_MS / 2;
      else if (half === 97 && clock >= DAY_MS / 2) clock -= DAY_MS / 2;
    }
    return first > 12
      ? this.#day(year, second, first) + clock
      : this.#day(year, first, second) + clock;
  }

  /** "E0603 12:00:00.123456"; c10 writes "E603". */
  #glog(buf: Uint8Array, to: number): number {
    if (this.#at < to && !isDigit(buf[this.#at]!)) this.#at++;
    const date = this.#digits(buf, to, 4);
    this.#at++;
    const clock = this.#clock(buf, to);
    return this.#yearless(Math.floor(date / 100), date % 100, clock);
  }

  /** "Sat Mar  4 04:10:52 2023", "Mar  4 04:10:52". */
  #named(buf: Uint8Array, to: number, hasYear: boolean): number {
    let month = monthAt(buf, this.#at);
    if (month === 0) month = monthAt(buf, (this.#at += 4));
    this.#at += 3;
    this.#blanks(buf, to);
    const day = this.#digits(buf, to, 2);
    this.#blanks(buf, to);
    const clock = this.#clock(buf, to);
    if (!hasYear) return this.#yearless(month, day, clock);
    this.#blanks(buf, to);
    return this.#day(this.#digits(buf, to, 4), month, day) + clock;
  }

  /** Seconds, or as many thousandths as there are digits. */
  #epoch(buf: Uint8Array, to: number): number {
    const start = this.#at;
    const whole = this.#digits(buf, to, 19);
    const length = this.#at - start;
    if (length > 13) return whole / 10 ** (length - 13);
    if (length === 13) return whole;
    return whole * 1000 + this.#fraction(buf, to);
  }

  #uptime(buf: Uint8Array, to: number): number {
    while (this.#at < to && !isDigit(buf[this.#at]!) && this.#at < to - 1) this.#at++;
    return this.#digits(buf, to, 10) * 1000 + this.#fraction(buf, to);
  }

  #clock(buf: Uint8Array, to: number): number {
    const h = this.#digits(buf, to, 2);
    this.#at++;
    const min = this.#digits(buf, to, 2);
    this.#at++;
    const s = this.#digits(buf, to, 2);
    if (!(h <= 24 && min <= 59 && s <= 60)) return NaN;
    return ((h * 60 + min) * 60 + s) * 1000 + this.#fraction(buf, to);
  }

  /** Milliseconds behind a point, a comma or (NeMo) a colon. */
  #fraction(buf: Uint8Array, to: number): number {
    const mark = buf[this.#at];
    if (mark !== 46 && mark !== 44 && mark !== 58) return 0;
    let i = this.#at + 1;
    if (i >= to || !isDigit(buf[i]!)) return 0;
    let ms = 0;
    let worth = 100;
    for (; i < to && isDigit(buf[i]!); i++) {
      ms += worth * (buf[i]! - ZERO);
      worth = Math.floor(worth / 10);
    }
    this.#at = i;
    return ms;
  }

  /** "+02:00", " -0700": what is to be taken off. */
  #zone(buf: Uint8Array, to: number): number {
    let i = this.#at;
    if (i < to && buf[i] === 32) i++;
    const sign = buf[i];
    if (i + 5 > to || (sign !== 43 && sign !== 45)) return 0;
    const colon = buf[i + 3] === 58 ? 1 : 0;
    for (const at of [i + 1, i + 2, i + 3 + colon, i + 4 + colon])
      if (at >= to || !isDigit(buf[at]!)) return 0;
    const end = i + 5 + colon;
    // "2026-01-01 00:00:00 -12345" is a number.
    if (end < to && isDigit(buf[end]!)) return 0;
    const hours = (buf[i + 1]! - ZERO) * 10 + (buf[i + 2]! - ZERO);
    const minutes = (buf[i + 3 + colon]! - ZERO) * 10 + (buf[i + 4 + colon]! - ZERO);
    if (hours > 14 || minutes > 59) return 0;
    return (sign === 45 ? -1 : 1) * (hours * 60 + minutes) * 60_000;
  }

  #yearless(month: number, day: number, clock: number): number {
    const near = this.#nearMs;
    if (!(near >= FIRST_ABSOLUTE_MS)) return this.#firstYearless(month, day, clock);
    const year = new Date(near).getUTCFullYear();
    let best = this.#day(year, month, day) + clock;
    // More than half a year away: the run crosses New Year.
    if (best - near > 183 * DAY_MS) best = this.#day(year - 1, month, day) + clock;
    else if (near - best > 183 * DAY_MS) best = this.#day(year + 1, month, day) + clock;
    return best;
  }

  /** No line was written after the file's last change. */
  #firstYearless(month: number, day: number, clock: number): number {
    const latest = this.#latestMs;
    if (!(latest >= FIRST_ABSOLUTE_MS)) return this.#day(ASSUMED_YEAR, month, day) + clock;
    const last = new Date(latest + ZONE_MS).getUTCFullYear();
    for (let year = last; year > last - LEAP_YEARS - 1; year--) {
      const ms = this.#day(year, month, day) + clock;
      const isDay = new Date(ms).getUTCMonth() === month - 1;
      if (isDay && ms <= latest + ZONE_MS) return ms;
    }
    return NaN;
  }

  #dated(clock: number): number {
    let near = this.#nearMs >= 0 ? this.#nearMs : this.#latestMs;
    if (!(near >= 0)) near = clock;
    let ms = Math.floor(near / DAY_MS) * DAY_MS + clock;
    if (ms - near > DAY_MS / 2 && ms >= DAY_MS) ms -= DAY_MS;
    else if (near - ms > DAY_MS / 2) ms += DAY_MS;
    return ms;
  }

  #day(year: number, month: number, day: number): number {
    const key = (year * 100 + month) * 100 + day;
    if (key === this.#dayKey) return this.#dayMs;
    if (!(month >= 1 && month <= 12 && day >= 1 && day <= 31)) return NaN;
    const full = year < 100 ? year + 2000 : year;
    if (full < 1970 || full > 2200) return NaN;
    this.#dayKey = key;
    return (this.#dayMs = Date.UTC(full, month - 1, day));
  }

  /** NaN where there are none. */
  #digits(buf: Uint8Array, to: number, most: number): number {
    const stop = Math.min(to, this.#at + most);
    let i = this.#at;
    let value = 0;
    for (; i < stop && isDigit(buf[i]!); i++) value = value * 10 + (buf[i]! - ZERO);
    if (i === this.#at) return NaN;
    this.#at = i;
    return value;
  }

  #blanks(buf: Uint8Array, to: number): void {
    while (this.#at < to && buf[this.#at] === 32) this.#at++;
  }
}

/** 1 to 12; 0 for none. */
function monthAt(buf: Uint8Array, at: number): number {
  const name = String.fromCharCode(buf[at] ?? 0, buf[at + 1] ?? 0, buf[at + 2] ?? 0).toLowerCase();
  const found = MONTHS.indexOf(name);
  return found >= 0 && found % 3 === 0 ? found / 3 + 1 : 0;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= ZERO + 9;
}
