/**
 * Cuts a stream into lines without making strings of them: files of samples have billions of characters, and nearly
 * all of them are numbers or have been seen in the line before.
 */
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;

/** The bytes belong to the caller as long as the call lasts. `isWhole` is false for a last line without an end. */
type OnByteLine = (
  bytes: Buffer,
  from: number,
  end: number,
  line: number,
  isWhole: boolean,
) => void;

export class ByteLines {
  readonly #onLine: OnByteLine;
  readonly #maxBytes: number;
  /** The beginning of a line that the next chunk goes on with. */
  #rest = Buffer.allocUnsafe(1 << 10);
  #used = 0;
  #isTooLong = false;
  #line = 0;
  /** Lines longer than the limit, which are not handed out. */
  tooLong = 0;

  constructor(onLine: OnByteLine, maxBytes: number) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    if (this.#used > 0 || this.#isTooLong) {
      const end = bytes.indexOf(NEWLINE);
      this.#keep(bytes, 0, end < 0 ? bytes.length : end);
      if (end < 0) return;
      this.#endRest(true);
      start = end + 1;
    }
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      if (end < 0) break;
      this.#emit(bytes, start, end, true);
      start = end + 1;
    }
    this.#keep(bytes, start, bytes.length);
  }

  end(): void {
    if (this.#used > 0 || this.#isTooLong) this.#endRest(false);
  }

  #endRest(isWhole: boolean): void {
    const used = this.#used;
    this.#used = 0;
    if (this.#isTooLong) {
      this.#isTooLong = false;
      this.#line++;
      this.tooLong++;
    } else this.#emit(this.#rest, 0, used, isWhole);
  }

  #emit(bytes: Buffer, from: number, to: number, isWhole: boolean): void {
    if (to - from > this.#maxBytes) {
      this.#line++;
      this.tooLong++;
      return;
    }
    const end = to > from && bytes[to - 1] === CARRIAGE_RETURN ? to - 1 : to;
    this.#onLine(bytes, from, end, ++this.#line, isWhole);
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    const length = this.#used + to - from;
    if (length > this.#maxBytes) this.#isTooLong = true;
    if (this.#isTooLong) return;
    if (length > this.#rest.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#rest.length));
      this.#rest.copy(larger, 0, 0, this.#used);
      this.#rest = larger;
    }
    bytes.copy(this.#rest, this.#used, from, to);
    this.#used = length;
  }
}
