/**
 * Room in the data folder. When it runs out, the service goes on from memory: the oldest evidence goes first, new evidence
 * is read from a temporary folder and not kept, and people see that on the page and in /healthz.
 */
import { access, lstat, mkdir, readdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../../base/errors.ts";
import type { RetentionConfig } from "../config/config.ts";
import { DAY_MS, GB } from "./retention.ts";

/** Left for incidents and the history. */
const RESERVE_BYTES = 8 << 20;
const MB = 1 << 20;

export interface DataFolderOptions {
  readonly folder: string;
  /** Where evidence lies, a folder an incident, named by time. */
  readonly evidence: string;
  /** For tests. */
  freeBytes?(this: void, folder: string): Promise<number>;
  sizeBytes?(this: void, folder: string): Promise<number>;
}

type EvidenceLimits = Pick<RetentionConfig, "evidenceDays" | "evidenceGB">;

export class DataFolder {
  readonly #options: DataFolderOptions;
  #freeBytes = Infinity;
  /** Why something could not be written last; null once something could. */
  #failure: string | null = null;
  /** Why evidence cannot be written though there is room: a file system that went read-only, or the folder is another's. */
  #closed: string | null = null;
  #shed = 0;

  constructor(options: DataFolderOptions) {
    this.#options = options;
  }

  /** What people should know; null while there is room. */
  get says(): string | null {
    if (this.#closed !== null && this.#freeBytes >= RESERVE_BYTES)
      return `the data folder cannot be written (${this.#closed}): incidents are kept in memory until it can, evidence is not kept`;
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
      if (this.#freeBytes < RESERVE_BYTES) return;
      // Where something could not be written, room alone is no sign that it can.
      if (this.#failure !== null || this.#closed !== null) this.#closed = await this.#whyClosed();
      this.#failure = null;
    } catch {
      // A disk that does not say how full it is: what cannot be written will tell.
      this.#freeBytes = Infinity;
    }
  }

  async #whyClosed(): Promise<string | null> {
    const { evidence } = this.#options;
    const probe = join(evidence, ".probe");
    try {
      await mkdir(evidence, { recursive: true, mode: 0o700 });
      await writeFile(probe, "");
      await rm(probe);
      return null;
    } catch (error) {
      const { code = "unknown" } = error as NodeJS.ErrnoException;
      // For lack of room: the oldest evidence makes some.
      return code === "ENOSPC" || code === "EDQUOT" ? null : (CLOSED[code] ?? code);
    }
  }

  /** Something could not be written; whether that is for lack of room. */
  failed(error: unknown): boolean {
    const text = errorText(error);
    if (!isFull(text)) return false;
    this.#failure = text;
    return true;
  }

  /**
   * Removes old evidence until there is room for so many bytes. Where all of it together would not make room, or removing it
   * does not free the disk, it stays: false. Also false where nothing can be written, whatever the room.
   */
  async makeRoom(bytes: number): Promise<boolean> {
    const { evidence, sizeBytes = sizeBytesOf } = this.#options;
    const wanted = bytes + RESERVE_BYTES;
    await this.look();
    this.#closed = await this.#whyClosed();
    if (this.#closed !== null) return false;
    if (this.#freeBytes >= wanted) return true;
    const folders: { path: string; bytes: number }[] = [];
    for (const name of await disposable(evidence)) {
      const path = join(evidence, name);
      folders.push({ path, bytes: await sizeBytes(path) });
    }
    const all = folders.reduce((sum, one) => sum + one.bytes, 0);
    if (this.#freeBytes + all < wanted) return false;
    for (const { path, bytes: size } of folders) {
      const before = this.#freeBytes;
      await rm(path, { recursive: true, force: true });
      this.#shed++;
      await this.look();
      if (this.#freeBytes >= wanted) return true;
      // Somebody else fills the disk, or what is removed stays in a snapshot.
      if (this.#freeBytes - before < size / 2) return false;
    }
    return false;
  }

  /** Removes evidence that is too old, then the oldest until the rest takes no more than it may; how many went. */
  async forget({ evidenceDays, evidenceGB }: EvidenceLimits, nowMs: number): Promise<number> {
    if (evidenceDays === null && evidenceGB === null) return 0;
    const { evidence, sizeBytes = sizeBytesOf } = this.#options;
    const oldestMs = evidenceDays === null ? -Infinity : nowMs - evidenceDays * DAY_MS;
    const mostBytes = evidenceGB === null ? Infinity : evidenceGB * GB;
    const folders: { path: string; bytes: number; isOld: boolean }[] = [];
    for (const name of await disposable(evidence)) {
      const path = join(evidence, name);
      const isOld = (madeMs(name) ?? Infinity) < oldestMs;
      folders.push({ path, bytes: evidenceGB === null ? 0 : await sizeBytes(path), isOld });
    }
    let left = folders.reduce((sum, { bytes, isOld }) => sum + (isOld ? 0 : bytes), 0);
    let removed = 0;
    for (const { path, bytes, isOld } of folders) {
      if (!isOld && left <= mostBytes) continue;
      if (!isOld) left -= bytes;
      await rm(path, { recursive: true, force: true });
      removed++;
    }
    return removed;
  }
}

/** When it was made, by its name (diagnose-incident.ts); null where it is not ours. */
function madeMs(name: string): number | null {
  const [, day, hour, minute, second, ms] =
    /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z/.exec(name) ?? [];
  const parsed = Date.parse(`${day}T${hour}:${minute}:${second}.${ms}Z`);
  return Number.isNaN(parsed) ? null : parsed;
}

/** In a folder of evidence: it is an incident's. Without it, the job went on and nothing was proven. */
const CONFIRMED = ".confirmed";

/** The newest may be just being looked at. */
const RECENT = 4;

export async function keepEvidence(folder: string): Promise<void> {
  await writeFile(join(folder, CONFIRMED), "").catch(() => {});
}

/** Folders of evidence in the order in which they can go: first what proved nothing, then the oldest. */
export async function disposable(evidence: string): Promise<string[]> {
  const names = (await readdir(evidence).catch(() => [] as string[])).sort();
  const isKept = await Promise.all(
    names.map((name) =>
      access(join(evidence, name, CONFIRMED)).then(
        () => true,
        () => false,
      ),
    ),
  );
  const isUnproven = (_: string, i: number): boolean => !isKept[i] && i < names.length - RECENT;
  return [...names.filter(isUnproven), ...names.filter((name, i) => !isUnproven(name, i))];
}

async function sizeBytesOf(folder: string): Promise<number> {
  let sum = 0;
  const names = await readdir(folder, { recursive: true }).catch(() => [] as string[]);
  for (const name of names)
    sum += await lstat(join(folder, name)).then(
      ({ blocks }) => 512 * blocks,
      () => 0,
    );
  return sum;
}

const CLOSED: Readonly<Record<string, string>> = {
  EROFS: "its file system is read-only",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EIO: "its disk fails",
};

function isFull(text: string): boolean {
  return /ENOSPC|EDQUOT|EROFS|no space left|disk quota|out of disk|read-only file system/i.test(
    text,
  );
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
