/**
 * Cuts objects of a given depth out of a stream of JSON, one string each, without holding the document. So one
 * cut or broken element does not cost the others, and several documents may follow one another in one file.
 */
const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const NEWLINE = 10;

export class JsonObjects {
  readonly #depthWanted: number;
  readonly #onObject: (text: string, line: number) => void;
  readonly #maxBytes: number;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #line = 1;
  #objectLine = 0;
  #parts: Buffer[] = [];
  #bytes = 0;
  #inside = false;
  #tooLong = false;

  /** `depth`: how many brackets are open around the objects; 1 for the elements of a top-level array. */
  constructor(depth: number, onObject: (text: string, line: number) => void, maxBytes = 1 << 26) {
    this.#depthWanted = depth;
    this.#onObject = onObject;
    this.#maxBytes = maxBytes;
  }

  /** Whether the bytes so far end inside a document. */
  get unfinished(): boolean {
    return this.#depth > 0 || this.#inString;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = this.#inside ? 0 : -1;
    for (let i = 0; i < bytes.length; i++) {
      const c = bytes[i] as number;
      if (c === NEWLINE) this.#line++;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (c === BACKSLASH) this.#escaped = true;
        else if (c === QUOTE) this.#inString = false;
        continue;
      }
      if (c === QUOTE) this.#inString = true;
      else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
        if (c === OPEN_BRACE && this.#depth === this.#depthWanted && !this.#inside) {
          this.#inside = true;
          this.#objectLine = this.#line;
          start = i;
        }
        this.#depth++;
      } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) {
        // A stray closing bracket must not turn the rest of the file upside down.
        this.#depth = Math.max(0, this.#depth - 1);
        if (this.#inside && this.#depth <= this.#depthWanted) {
          this.#keep(bytes.subarray(start, i + 1));
          this.#emit();
          start = -1;
        }
      }
    }
    if (this.#inside && start >= 0) this.#keep(Buffer.from(bytes.subarray(start)));
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) {
      this.#tooLong = true;
      this.#parts = [];
    } else this.#parts.push(part);
  }

  #emit(): void {
    if (!this.#tooLong)
      this.#onObject(Buffer.concat(this.#parts).toString("utf8"), this.#objectLine);
    this.#parts = [];
    this.#bytes = 0;
    this.#inside = false;
    this.#tooLong = false;
  }
}
