/**
 * Cuts chunks of bytes into lines and scans each. Carriage returns end the states of a progress bar, which belong to one
 * line; a line that is too long is cut, NULs and what a terminal would not show are left out.
 */
import { cleanBytes } from "./clean-bytes.ts";
import { NEWLINE, RETURN, scanForm, scanned } from "./scan-bytes.ts";

/** A line's rest beyond this is not looked at. */
export const MOST_LINE_BYTES = 8192;

export class LineCutter {
  /** Given where the line begins that was scanned last, and whether it is the last of its line's states. */
  readonly #onLine: (buf: Buffer, from: number, isLast: boolean) => void;
  readonly #carry = Buffer.alloc(MOST_LINE_BYTES);
  #carried = 0;
  #isCut = false;
  readonly #clean = Buffer.alloc(MOST_LINE_BYTES);
  bytes = 0;
  /** Ended so far. */
  lines = 0;
  cutLines = 0;
  nulLines = 0;

  constructor(onLine: (buf: Buffer, from: number, isLast: boolean) => void) {
    this.#onLine = onLine;
  }

  begin(): void {
    this.bytes = this.lines = this.cutLines = this.nulLines = 0;
    this.#carried = 0;
    this.#isCut = false;
  }

  push(buf: Buffer): void {
    this.bytes += buf.length;
    const end = buf.length;
    let at = this.#carried > 0 || this.#isCut ? this.#finishCarried(buf) : 0;
    while (at < end) {
      if (buf[at] === 0) {
        at = this.#skipNuls(buf, at);
        continue;
      }
      const limit = Math.min(end, at + MOST_LINE_BYTES);
      const stop = scanForm(buf, at, limit);
      const c = stop < end ? buf[stop] : -1;
      if (c === NEWLINE) {
        this.#line(buf, at, stop, true);
        this.lines++;
        at = stop + 1;
      } else if (c === RETURN && stop + 1 < end) at = this.#returned(buf, at, stop);
      else if (stop >= end || c === RETURN) {
        this.#carry.set(buf.subarray(at, end));
        this.#carried = end - at;
        return;
      } else {
        this.cutLines++;
        this.#line(buf, at, stop, true);
        this.#isCut = true;
        at = this.#finishCarried(buf, stop);
      }
    }
  }

  /** Ends the last line. */
  end(): void {
    if (this.#carried > 0) this.#flush(true);
    if (this.#carried > 0 || this.#isCut) this.lines++;
    this.#carried = 0;
    this.#isCut = false;
  }

  /** NULs are what a crashed machine leaves where blocks of a file were never written. */
  #skipNuls(buf: Buffer, from: number): number {
    let at = from;
    while (at < buf.length && buf[at] === 0) at++;
    this.nulLines++;
    return at;
  }

  /** Goes on with the line that the last chunk began; returns where the next one begins. */
  #finishCarried(buf: Buffer, from = 0): number {
    const newline = buf.indexOf(NEWLINE, from);
    let stop = newline < 0 ? buf.length : newline;
    if (!this.#isCut) {
      const back = buf.subarray(from, stop).indexOf(RETURN);
      if (back >= 0 && from + back + 1 < stop) stop = from + back;
      const room = MOST_LINE_BYTES - this.#carried;
      buf.copy(this.#carry, this.#carried, from, Math.min(stop, from + room));
      this.#carried = Math.min(MOST_LINE_BYTES, this.#carried + stop - from);
      if (stop - from > room) {
        this.cutLines++;
        this.#isCut = true;
        this.#flush(true);
        this.#carried = 0;
        return this.#finishCarried(buf, from);
      }
    }
    if (stop === buf.length) return stop;
    if (this.#carried > 0) this.#flush(stop === newline);
    this.#carried = 0;
    this.#isCut = false;
    if (stop === newline) this.lines++;
    return stop + 1;
  }

  #flush(isLast: boolean): void {
    const buf = this.#carry;
    const end = this.#carried;
    let from = 0;
    while (from < end) {
      if (buf[from] === 0 || buf[from] === RETURN) {
        from++;
        continue;
      }
      const stop = scanForm(buf, from, end);
      let next = stop;
      while (next < end && (buf[next] === RETURN || buf[next] === 32)) next++;
      this.#line(buf, from, stop, isLast && next >= end);
      from = Math.max(next, stop + 1);
    }
  }

  /** After a carriage return: the end of the line as Windows writes it, or the next state of a progress bar. */
  #returned(buf: Buffer, at: number, stop: number): number {
    let next = stop + 1;
    while (next < buf.length && (buf[next] === RETURN || buf[next] === 32)) next++;
    const isLast = next < buf.length && buf[next] === NEWLINE;
    this.#line(buf, at, stop, isLast);
    if (!isLast) return stop + 1;
    this.lines++;
    return next + 1;
  }

  #line(buf: Buffer, start: number, to: number, isLast: boolean): void {
    let from = start;
    if (buf[from] === 0xef && buf[from + 1] === 0xbb && buf[from + 2] === 0xbf) {
      // The byte order mark of a file, or of one that was put behind another.
      from += 3;
      scanForm(buf, from, to);
    }
    if (scanned.isDirty) {
      const length = cleanBytes(buf, from, to, this.#clean);
      if (buf.subarray(from, to).includes(0)) this.nulLines++;
      scanForm(this.#clean, 0, length);
      this.#onLine(this.#clean, 0, isLast);
    } else this.#onLine(buf, from, isLast);
  }
}
