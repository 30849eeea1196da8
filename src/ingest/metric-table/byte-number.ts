/** Numbers out of bytes: exact as Number() is, without a string where there are at most fifteen digits. */
const PLUS = 43;
const MINUS = 45;
const POINT = 46;
const MOST_DIGITS = 15;
/** Powers of ten that are exact doubles: a whole number divided by one of them is rounded just once. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?$/;
const INFINITE = /^([+-]?)inf(?:inity)?$/i;
const MAX_BYTES = 64;

/** What is not a number at all, unlike "NaN", which is one. */
export const NO_NUMBER = -Number.MAX_VALUE;

export function byteNumber(bytes: Buffer, from: number, end: number): number {
  let at = from;
  const sign = bytes[at];
  if (sign === MINUS || sign === PLUS) at++;
  const first = at;
  let whole = 0;
  let decimals = 0;
  let digit = 0;
  while (at < end && (digit = bytes[at]! - 48) >= 0 && digit <= 9) {
    whole = whole * 10 + digit;
    at++;
  }
  let digits = at - first;
  if (at < end && bytes[at] === POINT) {
    at++;
    const point = at;
    while (at < end && (digit = bytes[at]! - 48) >= 0 && digit <= 9) {
      whole = whole * 10 + digit;
      at++;
    }
    decimals = at - point;
    digits += decimals;
  }
  if (at < end || digits === 0 || digits > MOST_DIGITS) return oddNumber(bytes, from, end);
  const value = decimals === 0 ? whole : whole / POWERS[decimals]!;
  return sign === MINUS ? -value : value;
}

/** Exponents, long numbers, words. */
function oddNumber(bytes: Buffer, from: number, end: number): number {
  if (end - from > MAX_BYTES || end <= from) return NO_NUMBER;
  return textNumber(bytes.toString("latin1", from, end));
}

export function textNumber(text: string): number {
  if (NUMBER.test(text)) return Number(text);
  if (/^[+-]?nan$/i.test(text)) return NaN;
  const infinite = INFINITE.exec(text);
  if (!infinite) return NO_NUMBER;
  return infinite[1] === "-" ? -Infinity : Infinity;
}
