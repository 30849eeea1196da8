/**
 * A number in two parts, whole and thousandths: microseconds since 1970 with three decimals are no exact double, their
 * parts are. One object serves all numbers of a file.
 */
const MINUS = 45;
const POINT = 46;

export class JsonNumber {
  /** NaN for what is no number. */
  whole = NaN;
  /** Rounded; of the same sign as the number. */
  thousandths = 0;

  parse(bytes: Uint8Array, from: number, end: number): void {
    let at = from;
    const isNegative = bytes[at] === MINUS;
    if (isNegative) at++;
    const digits = at;
    let whole = 0;
    while (at < end && isDigit(bytes[at]!)) whole = whole * 10 + (bytes[at++]! - 48);
    let isOdd = at === digits || whole > Number.MAX_SAFE_INTEGER;
    let rest = 0;
    if (at < end && bytes[at] === POINT) {
      at++;
      for (let i = 0; i < 4; i++) {
        const digit = at < end && isDigit(bytes[at]!) ? bytes[at++]! - 48 : 0;
        if (i < 3) rest = rest * 10 + digit;
        else if (digit >= 5) rest++;
      }
      while (at < end && isDigit(bytes[at]!)) at++;
    }
    isOdd ||= at < end;
    if (isOdd) this.#parseOdd(bytes, from, end);
    else {
      this.whole = isNegative ? -whole : whole;
      this.thousandths = isNegative ? -rest : rest;
    }
  }

  /** Exponents, very long numbers, hexadecimal streams, words. */
  #parseOdd(bytes: Uint8Array, from: number, end: number): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, end - from).toString("latin1");
    const value = text === "" ? NaN : Number(text);
    const isFinite = Number.isFinite(value);
    this.whole = isFinite ? Math.trunc(value) : NaN;
    this.thousandths = isFinite ? Math.round((value - this.whole) * 1000) : 0;
  }
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57;
}
