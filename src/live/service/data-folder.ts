/**
 * Room in the data folder. When it runs out, the service goes on from memory: the oldest evidence goes first, new evidence
 * is read from a temporary folder and not kept, and people see that on the page and in /healthz.
 */
import { readdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../base/errors.ts";

/** Left for incidents and the history. */
const RESERVE_BYTES = 8 << 20;
const MB = 1 << 20;

export interface DataFolderOptions {
  readonly folder: string;
  /** Where evidence lies, a folder an incident, named by time. */
  readonly evidence: string;
  /** For tests. */
  freeBytes?(this: void, folder: string): Promise<number>;
}

export class DataFolder {
  readonly #options: DataFolderOptions;
  #freeBytes = Infinity;
  /** Why something could not be written last; null once something could. */
  #failure: string | null = null;
  #shed = 0;

  constructor(options: DataFolderOptions) {
    this.#options = options;
  }

  /** What people should know; null while there is room. */
  get says(): string | null {
    if (this.#failure === null && this.#freeBytes >= RESERVE_BYTES) return null;
    const free = Number.isFinite(this.#freeBytes)
      ? ` (${(this.#freeBytes / MB).toFixed(1)} MB free)`
      : "";
    const shed =
      this.#shed > 0 ? `; the oldest evidence of ${this.#shed} incidents was removed` : "";
    return `the data folder is full${free}: incidents are kept in memory until there is room, evidence is not kept${shed}`;
  }

  /** Asks the disk. */
  async look(): Promise<void> {
    try {
      const { folder, freeBytes = freeBytesOf } = this.#options;
      this.#freeBytes = await freeBytes(folder);
      if (this.#freeBytes >= RESERVE_BYTES) this.#failure = null;
    } catch {
      // A disk that does not say how full it is: what cannot be written will tell.
      this.#freeBytes = Infinity;
    }
  }

  /** Something could not be written; whether that is for lack of room. */
  failed(error: unknown): boolean {
    const text = errorText(error);
    if (!isFull(text)) return false;
    this.#failure = text;
    return true;
  }

  /** Removes the oldest evidence until there is room for so many bytes; false where there is none even then. */
  async makeRoom(bytes: number): Promise<boolean> {
    const { evidence } = this.#options;
    await this.look();
    if (this.#freeBytes >= bytes + RESERVE_BYTES) return true;
    const names = await readdir(evidence).catch(() => [] as string[]);
    for (const name of names.toSorted((a, b) => (a < b ? -1 : 1))) {
      await rm(join(evidence, name), { recursive: true, force: true });
      this.#shed++;
      await this.look();
      if (this.#freeBytes >= bytes + RESERVE_BYTES) return true;
    }
    return false;
  }
}

function isFull(text: string): boolean {
  return /ENOSPC|EDQUOT|EROFS|no space left|disk quota|out of disk|read-only file system/i.test(
    text,
  );
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
