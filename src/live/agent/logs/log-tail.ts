/**
 * Follows the end of one growing log: what was there before is skipped, a file that was rotated away is read to its end,
 * one that was cut is read from its start. Reads are bounded; a log that grows faster than that loses its middle.
 */
import { constants } from "node:fs";
import { open, stat, type FileHandle } from "node:fs/promises";
import { LineSplitter } from "../../../base/lines.ts";
import { openingError } from "../rings/ring-file.ts";

const CHUNK = 1 << 18;
/** Read at most so much in one go; further behind than the other, the rest is skipped. */
const MOST_AT_ONCE = 4 << 20;
const MOST_BEHIND = 64 << 20;
const LINE_BYTES = 1 << 16;
const NEWLINE = 10;

export class LogTail {
  readonly path: string;
  #file: FileHandle | null = null;
  #isClosed = false;
  #inode = "";
  #offset = 0;
  #isPartial = false;
  readonly #lines: LineSplitter;
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  readonly #onRotated: (inode: string, read: number) => void;
  /** Bytes that were skipped because they came too fast. */
  skipped = 0;

  /** `onRotated`: a file was read to its end and has lost its name to another. */
  constructor(
    path: string,
    onLine: (line: string) => void,
    onRotated: (inode: string, read: number) => void = () => {},
  ) {
    this.path = path;
    this.#onRotated = onRotated;
    this.#lines = new LineSplitter(onLine, LINE_BYTES);
  }

  get inode(): string {
    return this.#inode;
  }

  /** What is there already was read before, or is none of ours: only what comes is. */
  async skipTo(wanted: number | "end"): Promise<void> {
    const file = await this.open();
    const { size } = await file.stat();
    const offset = wanted === "end" ? size : wanted;
    // Shorter than what was read of it: another file with its number.
    if (offset > size || offset === 0) return;
    this.#offset = offset;
    const last = Buffer.alloc(1);
    await file.read(last, 0, 1, offset - 1);
    // The rest of a line whose beginning was skipped says nothing.
    this.#isPartial = last[0] !== NEWLINE;
  }

  close(): void {
    this.#isClosed = true;
    this.#closeFile();
  }

  #closeFile(): void {
    void this.#file?.close().catch(() => {});
    this.#file = null;
  }

  /** Reads what is new; whether there was any. Never throws. */
  async poll(): Promise<boolean> {
    try {
      const isNew = await this.#readNew(await this.open());
      return (await this.#followRotation()) || isNew;
    } catch {
      return false;
    }
  }

  /** The last bytes of the file, from the start of a line on. */
  async end(most: number): Promise<Buffer> {
    return this.#file === null || most <= 0 ? Buffer.alloc(0) : await endOf(this.#file, most);
  }

  /** Throws where it cannot be opened. Never a link, which could lead anywhere; never waits, as for a pipe. */
  async open(): Promise<FileHandle> {
    if (this.#file !== null) return this.#file;
    const file = await open(
      this.path,
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    const info = await file.stat({ bigint: true });
    if (this.#isClosed || !info.isFile()) {
      await file.close();
      throw new Error("is not a plain file");
    }
    this.#file = file;
    this.#inode = `${info.dev} ${info.ino}`;
    this.#offset = 0;
    return file;
  }

  async #readNew(file: FileHandle): Promise<boolean> {
    const { size } = await file.stat();
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
      const { bytesRead } = await file.read(this.#buffer, 0, want, this.#offset);
      if (bytesRead === 0) break;
      this.#offset += bytesRead;
      this.#push(this.#buffer.subarray(0, bytesRead));
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
  async #followRotation(): Promise<boolean> {
    let inode: string;
    try {
      const info = await stat(this.path, { bigint: true });
      inode = `${info.dev} ${info.ino}`;
    } catch {
      // Moved away, and nothing in its place yet: whoever has it open may still write.
      return false;
    }
    const file = await this.open();
    if (inode === this.#inode || this.#offset < (await file.stat()).size) return false;
    this.#lines.end();
    this.#onRotated(this.#inode, this.#offset);
    this.#closeFile();
    this.#isPartial = false;
    return await this.#readNew(await this.open());
  }
}

/** The last bytes of a file, from the start of a line on. */
export async function endOf(file: FileHandle, most: number): Promise<Buffer> {
  const { size } = await file.stat();
  const from = Math.max(0, size - most);
  const bytes = Buffer.alloc(size - from);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
  const whole = bytes.subarray(0, bytesRead);
  return from === 0 ? whole : whole.subarray(whole.indexOf(NEWLINE) + 1);
}

export function tailTrouble(path: string, error: unknown): string {
  return `${path}: ${openingError(error)}`;
}
