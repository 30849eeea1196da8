/** Numbers and blanks in bytes. */
import { NO_RANK } from "./stream-table.ts";

const ZERO = 48;

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
