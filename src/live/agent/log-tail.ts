/**
 * Follows the end of one growing log: what was there before is skipped, a file that was rotated away is read to its end,
 * one that was cut is read from its start. Reads are bounded; a log that grows faster than that loses its middle.
 */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { LineSplitter } from "../../base/lines.ts";
import { openingError } from "./ring-file.ts";

const CHUNK = 1 << 18;
/** Read at most so much in one go; further behind than the other, the rest is skipped. */
const MOST_AT_ONCE = 4 << 20;
const MOST_BEHIND = 64 << 20;
const LINE_BYTES = 1 << 16;
const NEWLINE = 10;

export class LogTail {
  readonly path: string;
  #fd = -1;
  #inode = "";
  #offset = 0;
  #isPartial = false;
  readonly #lines: LineSplitter;
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  readonly #onRotated: (inode: string, read: number) => void;
  /** Bytes that were skipped because they came too fast. */
  skipped = 0;

  /** Throws where it cannot be opened. `onRotated`: a file was read to its end and has lost its name to another. */
  constructor(
    path: string,
    onLine: (line: string) => void,
    onRotated: (inode: string, read: number) => void = () => {},
  ) {
    this.path = path;
    this.#onRotated = onRotated;
    this.#lines = new LineSplitter(onLine, LINE_BYTES);
    this.#open();
  }

  get inode(): string {
    return this.#inode;
  }

  /** What is there already was read before, or is none of ours: only what comes is. */
  skipTo(offset = fstatSync(this.#fd).size): void {
    const { size } = fstatSync(this.#fd);
    // Shorter than what was read of it: another file with its number.
    if (offset > size || offset === 0) return;
    this.#offset = offset;
    const last = Buffer.alloc(1);
    readSync(this.#fd, last, 0, 1, offset - 1);
    // The rest of a line whose beginning was skipped says nothing.
    this.#isPartial = last[0] !== NEWLINE;
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }

  /** Reads what is new; whether there was any. Never throws. */
  poll(): boolean {
    try {
      if (this.#fd < 0) this.#open();
      const isNew = this.#readNew();
      return this.#followRotation() || isNew;
    } catch {
      return false;
    }
  }

  /** The last bytes of the file, from the start of a line on. */
  end(most: number): Buffer {
    if (this.#fd < 0 || most <= 0) return Buffer.alloc(0);
    const { size } = fstatSync(this.#fd);
    const from = Math.max(0, size - most);
    const bytes = Buffer.alloc(size - from);
    const got = bytes.length === 0 ? 0 : readSync(this.#fd, bytes, 0, bytes.length, from);
    const whole = bytes.subarray(0, got);
    return from === 0 ? whole : whole.subarray(whole.indexOf(NEWLINE) + 1);
  }

  /** Never a link, which could lead anywhere; never waits, as for a pipe. */
  #open(): void {
    const fd = openSync(
      this.path,
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    const info = fstatSync(fd, { bigint: true });
    if (!info.isFile()) {
      closeSync(fd);
      throw new Error("is not a plain file");
    }
    this.#fd = fd;
    this.#inode = `${info.dev} ${info.ino}`;
    this.#offset = 0;
  }

  #readNew(): boolean {
    const { size } = fstatSync(this.#fd);
    if (size < this.#offset) {
      this.#offset = 0;
      this.#isPartial = false;
      this.#lines.end();
    }
    if (size - this.#offset > MOST_BEHIND) {
      this.skipped += size - this.#offset - MOST_AT_ONCE;
      this.#offset = size - MOST_AT_ONCE;
      this.#lines.end();
      this.#isPartial = true;
    }
    const end = Math.min(size, this.#offset + MOST_AT_ONCE);
    const isNew = this.#offset < end;
    while (this.#offset < end) {
      const want = Math.min(CHUNK, end - this.#offset);
      const got = readSync(this.#fd, this.#buffer, 0, want, this.#offset);
      if (got === 0) break;
      this.#offset += got;
      this.#push(this.#buffer.subarray(0, got));
    }
    return isNew;
  }

  #push(bytes: Buffer): void {
    let from = 0;
    if (this.#isPartial) {
      from = bytes.indexOf(NEWLINE) + 1;
      if (from === 0) return;
      this.#isPartial = false;
    }
    this.#lines.push(bytes.subarray(from));
  }

  /** Whether another file has taken the name, and something of it was read. */
  #followRotation(): boolean {
    let inode: string;
    try {
      const info = statSync(this.path, { bigint: true });
      inode = `${info.dev} ${info.ino}`;
    } catch {
      // Moved away, and nothing in its place yet: whoever has it open may still write.
      return false;
    }
    if (inode === this.#inode || this.#offset < fstatSync(this.#fd).size) return false;
    this.#lines.end();
    this.#onRotated(this.#inode, this.#offset);
    this.close();
    this.#isPartial = false;
    this.#open();
    return this.#readNew();
  }
}

export function tailTrouble(path: string, error: unknown): string {
  return `${path}: ${openingError(error)}`;
}
