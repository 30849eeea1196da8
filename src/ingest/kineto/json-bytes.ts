/**
 * JSON on bytes that lie in one piece. Every function returns the position behind what it read, or INCOMPLETE where
 * the bytes end first: the caller then tries again with more of them.
 */
export const INCOMPLETE = -1;
export const BAD = -2;

export const QUOTE = 34;
export const COMMA = 44;
export const COLON = 58;
export const OPEN_BRACKET = 91;
const BACKSLASH = 92;
export const CLOSE_BRACKET = 93;
export const OPEN_BRACE = 123;
export const CLOSE_BRACE = 125;
export const SPACE = 32;

/** Keys and most values end within this many bytes; beyond, the engine's own search is faster than a loop. */
const SHORT_BYTES = 24;

/** `at` is the first byte of the text; returns the position of the closing quote. */
export function stringEnd(bytes: Uint8Array, at: number, end: number): number {
  const near = Math.min(at + SHORT_BYTES, end);
  for (let i = at; i < near; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) return i;
    if (byte === BACKSLASH) return farStringEnd(bytes, at, i, end);
  }
  return near === end ? INCOMPLETE : farStringEnd(bytes, at, near, end);
}

function farStringEnd(bytes: Uint8Array, at: number, from: number, end: number): number {
  let i = from;
  for (;;) {
    i = bytes.indexOf(QUOTE, i);
    if (i < 0 || i >= end) return INCOMPLETE;
    let slashes = 0;
    while (i - slashes > at && bytes[i - slashes - 1] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return i;
    i++;
  }
}

/** The first byte at or behind `at` that is no white space; `end` where there is none. */
export function skipSpace(bytes: Uint8Array, at: number, end: number): number {
  let i = at;
  while (i < end && bytes[i]! <= SPACE) i++;
  return i;
}

/** `at` is an opening brace or bracket. Which of them closes is not looked at. */
export function nestedEnd(bytes: Uint8Array, at: number, end: number): number {
  let depth = 0;
  let i = at;
  while (i < end) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      i = stringEnd(bytes, i + 1, end);
      if (i < 0) return INCOMPLETE;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return i + 1;
    i++;
  }
  return INCOMPLETE;
}

/** A number or a bare word: also NaN, inf and -nan, which Kineto writes for bandwidths. */
export function scalarEnd(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end; i++) {
    const byte = bytes[i]!;
    if (byte <= SPACE || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      return i === at ? BAD : i;
    }
    if (byte === QUOTE || byte === COLON || byte === OPEN_BRACE || byte === OPEN_BRACKET)
      return BAD;
  }
  return INCOMPLETE;
}

export function valueEnd(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return INCOMPLETE;
  const byte = bytes[at]!;
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return nestedEnd(bytes, at, end);
  if (byte !== QUOTE) return scalarEnd(bytes, at, end);
  const close = stringEnd(bytes, at + 1, end);
  return close < 0 ? INCOMPLETE : close + 1;
}

/** Passes over one value of any size, piece by piece. */
export class ValueSkipper {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isBegun = false;

  /** The position behind the value; INCOMPLETE where all the bytes belong to it. */
  skip(bytes: Uint8Array, from: number, end: number): number {
    for (let i = from; i < end; i++) {
      const byte = bytes[i]!;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) {
          this.#isInString = false;
          if (this.#depth === 0) return i + 1;
        }
      } else if (byte === QUOTE) this.#isInString = this.#isBegun = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.#depth++;
        this.#isBegun = true;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#depth === 0) return i;
        if (--this.#depth === 0) return i + 1;
      } else if (this.#depth === 0 && (byte === COMMA || (this.#isBegun && byte <= SPACE))) {
        return i;
      } else if (byte > SPACE) this.#isBegun = true;
    }
    return INCOMPLETE;
  }
}
