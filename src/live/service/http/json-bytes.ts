/**
 * JSON written as bytes: columns of ten thousand numbers each second. Numbers are rounded as `column` (json.ts) does and
 * written digit by digit, which takes a fifth of making lists of them and handing those to JSON.stringify.
 */
import { getOrInsert } from "../../../base/group-by.ts";

/** Up to here thousandths are exact; beyond, whatever JavaScript writes. */
const MOST_THOUSANDTHS = Number.MAX_SAFE_INTEGER;
const LONGEST_NUMBER = 32;
const FIRST_BYTES = 1 << 16;
const [COMMA, DOT, MINUS, ZERO] = [44, 46, 45, 48];

export class JsonBytes {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;
  readonly #words = new Map<string, Buffer>();

  /** JSON already. */
  text(json: string): this {
    this.#room(3 * json.length);
    this.#length += this.#bytes.write(json, this.#length);
    return this;
  }

  /** To a thousandth; null for what is no number. */
  numbers(values: Float32Array | Float64Array): this {
    this.text("[");
    for (let i = 0; i < values.length; i++) {
      this.#room(LONGEST_NUMBER);
      if (i > 0) this.#bytes[this.#length++] = COMMA;
      const value = values[i]!;
      const thousandths = Math.round(value * 1000);
      if (!Number.isFinite(thousandths))
        this.#length += this.#bytes.write("null", this.#length, "latin1");
      else if (Math.abs(thousandths) > MOST_THOUSANDTHS)
        this.#length += this.#bytes.write(String(thousandths / 1000), this.#length, "latin1");
      else this.#number(thousandths);
    }
    return this.text("]");
  }

  /** Few different ones, again and again. */
  words(values: readonly string[]): this {
    this.text("[");
    for (let i = 0; i < values.length; i++) {
      const word = this.#wordOf(values[i]!);
      this.#room(word.length + 1);
      if (i > 0) this.#bytes[this.#length++] = COMMA;
      this.#bytes.set(word, this.#length);
      this.#length += word.length;
    }
    return this.text("]");
  }

  done(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #number(thousandths: number): void {
    if (thousandths < 0) this.#bytes[this.#length++] = MINUS;
    const all = Math.abs(thousandths);
    const whole = Math.floor(all / 1000);
    const rest = all - 1000 * whole;
    this.#digits(whole);
    if (rest === 0) return;
    this.#bytes[this.#length++] = DOT;
    const hundreds = Math.floor(rest / 100);
    const tens = Math.floor(rest / 10) % 10;
    this.#bytes[this.#length++] = ZERO + hundreds;
    if (rest % 100 === 0) return;
    this.#bytes[this.#length++] = ZERO + tens;
    if (rest % 10 !== 0) this.#bytes[this.#length++] = ZERO + (rest % 10);
  }

  #digits(whole: number): void {
    let digits = 1;
    for (let limit = 10; whole >= limit; limit *= 10) digits++;
    let left = whole;
    for (let at = this.#length + digits - 1; at >= this.#length; at--) {
      const next = Math.floor(left / 10);
      this.#bytes[at] = ZERO + (left - 10 * next);
      left = next;
    }
    this.#length += digits;
  }

  #wordOf(word: string): Buffer {
    return getOrInsert(this.#words, word, () => Buffer.from(JSON.stringify(word)));
  }

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#length + bytes));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
