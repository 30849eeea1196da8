/**
 * For logs in which nearly every line is new (samples of text, dumps): the heads of lines that were read before. A line
 * that begins with one of them, whatever its numbers, has its time, writer and message where that one has them.
 */
import { NO_RANK } from "./stream-table.ts";

const ZERO = 48;

interface KnownHead {
  readonly form: number;
  /** From the line's start to its message, and the blank before that. */
  readonly bytes: Uint8Array;
}

const MOST_HEADS = 12;

export class KnownHeads {
  /** The longest first: a shorter one may be the beginning of a longer. */
  readonly #heads: KnownHead[] = [];

  /** Learns the head of a line, where its bytes show it. */
  add(form: number, buf: Uint8Array, from: number, content: number): void {
    const end = isBlank(buf[content] ?? 0) && content > from ? content + 1 : content;
    // A number at its end may go on in the message.
    if (end > from && isWord(buf[end - 1]!)) return;
    if (this.#heads.some(({ bytes }) => endOf(bytes, buf, from, end) === end)) return;
    const head = { form, bytes: Uint8Array.from(buf.subarray(from, end)) };
    const at = this.#heads.findIndex(({ bytes }) => bytes.length <= head.bytes.length);
    this.#heads.splice(at < 0 ? this.#heads.length : at, 0, head);
    if (this.#heads.length > MOST_HEADS) this.#heads.shift();
  }

  /** The form of a line that begins alike; -1 where none does. */
  find(buf: Uint8Array, from: number, to: number): number {
    for (const { form, bytes } of this.#heads) if (endOf(bytes, buf, from, to) >= 0) return form;
    return -1;
  }
}

/** Where the head ends in the line, -1 where the line begins otherwise. Digits count as one. */
function endOf(head: Uint8Array, buf: Uint8Array, from: number, to: number): number {
  let at = from;
  for (let i = 0; i < head.length;) {
    if (at >= to) return -1;
    if (isDigit(head[i]!)) {
      if (!isDigit(buf[at]!)) return -1;
      while (i < head.length && isDigit(head[i]!)) i++;
      while (at < to && isDigit(buf[at]!)) at++;
    } else if (head[i++] !== buf[at++]) return -1;
  }
  return at;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isWord(code: number): boolean {
  return isDigit(code) || ((code | 32) >= 97 && (code | 32) <= 122) || code >= 128;
}

/** Numbers and blanks in bytes. */
export function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

/** NO_RANK where it is none. */
export function wholeNumber(buf: Uint8Array, from: number, to: number): number {
  if (from < 0 || to <= from || to - from > 9) return NO_RANK;
  let value = 0;
  for (let i = from; i < to; i++) {
    const digit = buf[i]! - ZERO;
    if (digit < 0 || digit > 9) return NO_RANK;
    value = value * 10 + digit;
  }
  return value;
}

/** "12", "0.02"; a comma ends it, because a list's begins with one. */
export function decimal(buf: Uint8Array, from: number, to: number): number {
  if (from < 0) return NaN;
  let value = 0;
  let scale = 0;
  for (let i = from; i < to; i++) {
    const c = buf[i]!;
    if (c === 46 && scale === 0) scale = 1;
    else if (c >= ZERO && c <= ZERO + 9) {
      value = value * 10 + (c - ZERO);
      scale *= 10;
    } else break;
  }
  return scale > 1 ? value / scale : value;
}
