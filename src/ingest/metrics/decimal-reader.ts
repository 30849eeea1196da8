/**
 * Numbers straight out of bytes: making a text of each of a million samples costs more than fetching them. Equal to
 * what Number() makes of the same text, bit for bit.
 */
import { BAD, INCOMPLETE } from "../kineto/json-bytes.ts";

const QUOTE = 34;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const POINT = 46;
const CLOSE_BRACKET = 93;
const CLOSE_BRACE = 125;
const LOWER_CASE = 32;
const E = 101;

/** These are exact, and so a product or quotient of one with an exact integer is rounded once, as Number() does. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));
const MOST_EXPONENT_DIGITS = 4;
const MOST_CHARACTERS = 512;

/** As Go and VictoriaMetrics write what is no number of JSON. */
const WORDS = new Map([
  ["Inf", Infinity],
  ["+Inf", Infinity],
  ["-Inf", -Infinity],
  ["NaN", NaN],
  ["null", NaN],
]);

export class DecimalReader {
  /** What the last read found; NaN for null. */
  value = NaN;

  /**
   * The position behind the number, which a quote, comma, bracket or space ends; INCOMPLETE where the bytes end first,
   * BAD where there is no number or no end.
   */
  read(bytes: Uint8Array, from: number, end: number): number {
    let at = from;
    let byte = at < end ? bytes[at]! : 0;
    const isNegative = byte === MINUS;
    if (isNegative) byte = ++at < end ? bytes[at]! : 0;
    let mantissa = 0;
    const digits = at;
    while (byte >= 48 && byte <= 57) {
      mantissa = mantissa * 10 + (byte - 48);
      byte = ++at < end ? bytes[at]! : 0;
    }
    let isOdd = at === digits;
    let exponent = 0;
    if (byte === POINT) {
      const point = ++at;
      byte = at < end ? bytes[at]! : 0;
      while (byte >= 48 && byte <= 57) {
        mantissa = mantissa * 10 + (byte - 48);
        byte = ++at < end ? bytes[at]! : 0;
      }
      exponent = point - at;
    }
    if ((byte | LOWER_CASE) === E) {
      byte = ++at < end ? bytes[at]! : 0;
      const isBelow = byte === MINUS;
      if (isBelow || byte === PLUS) byte = ++at < end ? bytes[at]! : 0;
      const first = at;
      let written = 0;
      while (byte >= 48 && byte <= 57) {
        written = written * 10 + (byte - 48);
        byte = ++at < end ? bytes[at]! : 0;
      }
      isOdd ||= at === first || at - first > MOST_EXPONENT_DIGITS;
      exponent += isBelow ? -written : written;
    }
    if (at >= end) return end - from > MOST_CHARACTERS ? BAD : INCOMPLETE;
    if (isOdd || !isEnd(byte) || mantissa > Number.MAX_SAFE_INTEGER || Math.abs(exponent) > 22) {
      return this.#readOdd(bytes, from, end);
    }
    if (exponent < 0) mantissa /= POWERS[-exponent]!;
    else if (exponent > 0) mantissa *= POWERS[exponent]!;
    this.value = isNegative ? -mantissa : mantissa;
    return at;
  }

  /** Seventeen digits, far exponents, words. */
  #readOdd(bytes: Uint8Array, from: number, end: number): number {
    const limit = Math.min(end, from + MOST_CHARACTERS);
    let at = from;
    while (at < limit && !isEnd(bytes[at]!)) at++;
    if (at === limit) return limit < end ? BAD : INCOMPLETE;
    if (at === from) return BAD;
    let text = "";
    for (let i = from; i < at; i++) text += String.fromCharCode(bytes[i]!);
    this.value = WORDS.get(text) ?? Number(text);
    return this.value === this.value || WORDS.has(text) ? at : BAD;
  }
}

function isEnd(byte: number): boolean {
  return (
    byte === QUOTE ||
    byte === COMMA ||
    byte === CLOSE_BRACKET ||
    byte === CLOSE_BRACE ||
    byte <= LOWER_CASE
  );
}
