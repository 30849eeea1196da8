/**
 * Cuts a stream of bytes into lines. Faster than node:readline (research note: 484 against 150 MB/s)
 * and bounded: a line longer than `maxLineBytes` is cut there, so that a binary file mistaken for a
 * log cannot fill the memory.
 */
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;

export class LineSplitter {
  readonly #onLine: (text: string, lineNumber: number) => void;
  readonly #maxLineBytes: number;
  #rest: Buffer[] = [];
  #restBytes = 0;
  #line = 0;

  constructor(onLine: (text: string, lineNumber: number) => void, maxLineBytes = 65536) {
    this.#onLine = onLine;
    this.#maxLineBytes = maxLineBytes;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      if (end < 0) break;
      this.#emit(bytes.subarray(start, end));
      start = end + 1;
    }
    if (start < bytes.length) this.#keep(bytes.subarray(start));
  }

  end(): void {
    if (this.#restBytes > 0) this.#emit(Buffer.alloc(0));
  }

  #keep(tail: Buffer): void {
    const room = this.#maxLineBytes - this.#restBytes;
    // A copy: the caller may reuse its chunk.
    if (room > 0) this.#rest.push(Buffer.from(tail.subarray(0, room)));
    this.#restBytes += tail.length;
  }

  #emit(tail: Buffer): void {
    let line = tail;
    if (this.#restBytes > 0) {
      this.#rest.push(tail);
      line = Buffer.concat(this.#rest);
      this.#rest = [];
      this.#restBytes = 0;
    }
    if (line.length > 0 && line[line.length - 1] === CARRIAGE_RETURN) line = line.subarray(0, -1);
    if (line.length > this.#maxLineBytes) line = line.subarray(0, this.#maxLineBytes);
    this.#line++;
    this.#onLine(line.toString("utf8"), this.#line);
  }
}
