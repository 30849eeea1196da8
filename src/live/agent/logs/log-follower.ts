/** The logs that patterns name, followed as they grow: iterations with their times, and failures, a few a minute. */
import { lstat, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { LiveLogLines, type LogFailureLine, type LogIteration, type Writer } from "./log-lines.ts";
import { LogTail, tailTrouble } from "./log-tail.ts";
import type { SlowStorage } from "../evidence/slow-storage.ts";

/** Files are looked for once in so many ticks. */
const LOOK_EVERY = 5;
const MOST_TOLD = 10_000;
const MOST_FILES = 1024;
/** A log that was quiet for so many ticks has finished the traceback that it began. */
const REST_TICKS = 2;
const FAILURES_A_MINUTE = 5;
const MINUTE_MS = 60_000;
/** A line's own time counts where it is about now: a zone that it does not name puts it hours off. */
const NEAR_MS = 60_000;
/** Writers that are remembered; whoever prints random prefixes makes it forget. */
const MOST_WRITERS = 16_384;

export interface LogRow extends Writer {
  readonly path: string;
  readonly iteration: number;
  readonly endMs: number;
  readonly durationMs: number;
}

export interface LogFailure extends LogFailureLine {
  readonly path: string;
  /** Further ones of the writer that were not told since the last one. */
  readonly untold: number;
}

export interface LogTick {
  readonly rows: readonly LogRow[];
  readonly failures: readonly LogFailure[];
  /** Each told once. */
  readonly troubles: readonly string[];
}

interface Seen {
  iteration: number;
  stampMs: number;
  /** Of the last iteration of the tick before: lines of one tick were read at once, whenever they were written. */
  batchMs: number;
  batchIteration: number;
}

interface Followed {
  readonly tail: LogTail;
  readonly lines: LiveLogLines;
  quietTicks: number;
}

export class LogFollower {
  readonly #patterns: readonly string[];
  readonly #storage: SlowStorage;
  readonly #files = new Map<string, Followed>();
  readonly #seen = new Map<string, Seen>();
  readonly #told = new Set<string>();
  readonly #allowed = new Map<string, { fromMs: number; told: number; untold: number }>();
  /** Files that lost their names, and how far they were read. */
  readonly #rotated = new Map<string, number>();
  #ticks = 0;
  #nowMs = 0;
  #iterations: (LogIteration & { readonly path: string })[] = [];
  #failures: LogFailure[] = [];
  #rows: LogRow[] = [];
  #troubles: string[] = [];
  #isReading = false;

  constructor(patterns: readonly string[], storage: SlowStorage) {
    this.#patterns = patterns;
    this.#storage = storage;
  }

  /** What was read since the last call. */
  take(): LogTick {
    const [rows, failures, troubles] = [this.#rows, this.#failures, this.#troubles];
    this.#rows = [];
    this.#failures = [];
    this.#troubles = [];
    return { rows, failures, troubles };
  }

  /** Reads what is new in all files, unless that is under way already. Never rejects. */
  async read(nowMs: number): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#nowMs = nowMs;
    if (this.#ticks % LOOK_EVERY === 0) await this.#look();
    this.#ticks++;
    for (const one of this.#files.values()) {
      const { tail, lines } = one;
      const skipped = tail.skipped;
      try {
        const isNew = await this.#storage.read(tail.path, () => tail.poll());
        one.quietTicks = isNew ? 0 : one.quietTicks + 1;
        if (one.quietTicks === REST_TICKS) lines.rest();
      } catch (error) {
        this.#tell(tailTrouble(tail.path, error));
      }
      if (tail.skipped > skipped)
        this.#tell(`${tail.path}: grows faster than it is read; parts are skipped`);
    }
    this.#makeRows();
    this.#isReading = false;
  }

  /** The last bytes of the logs of some ranks, or of all. */
  async ends(
    ranks: readonly number[] | null,
    bytes: number,
  ): Promise<{ path: string; inode: string; bytes: Buffer }[]> {
    const found: { path: string; inode: string; bytes: Buffer }[] = [];
    for (const { tail, lines } of this.#files.values()) {
      if (ranks !== null && lines.fileRank >= 0 && !ranks.includes(lines.fileRank)) continue;
      const { path, inode } = tail;
      try {
        const end = await this.#storage.read(path, () => tail.end(bytes));
        found.push({ path, inode, bytes: end });
      } catch (error) {
        this.#tell(tailTrouble(path, error));
      }
    }
    return found;
  }

  close(): void {
    for (const { tail } of this.#files.values()) tail.close();
    this.#files.clear();
  }

  async #look(): Promise<void> {
    const inodes = new Set([...this.#files.values()].map(({ tail }) => tail.inode));
    const present = new Set<string>();
    let isWhole = true;
    for (const pattern of this.#patterns) {
      try {
        const found = await this.#storage.read(pattern, () => expandPattern(pattern, MOST_FILES));
        if (found.isCut) this.#tell(`${pattern}: matches more files than are followed`);
        if (found.paths.length === 0) this.#tell(`${pattern}: no such file yet`);
        for (const path of found.paths) {
          present.add(path);
          await this.#follow(path, inodes);
        }
      } catch (error) {
        isWhole = false;
        this.#tell(tailTrouble(pattern, error));
      }
    }
    // Gone under its name, and nobody writes it any more.
    for (const [path, { tail, quietTicks }] of isWhole ? this.#files : []) {
      if (present.has(path) || quietTicks < LOOK_EVERY) continue;
      tail.close();
      this.#files.delete(path);
    }
  }

  async #follow(path: string, inodes: Set<string>): Promise<void> {
    if (this.#files.has(path)) return;
    if (this.#files.size >= MOST_FILES) {
      this.#tell(`more than ${MOST_FILES} logs: the others are not followed`);
      return;
    }
    const lines = new LiveLogLines(
      path,
      (one) => this.#iterations.push({ ...one, path }),
      (one) => this.#failure(path, one),
    );
    const tail = new LogTail(
      path,
      (line) => lines.line(line),
      (inode, read) => this.#rotated.set(inode, read),
    );
    try {
      await this.#storage.read(path, async () => {
        await tail.open();
        const read = this.#rotated.get(tail.inode);
        if (read !== undefined) await tail.skipTo(read);
        else if (this.#ticks === 0) await tail.skipTo("end");
      });
    } catch (error) {
      tail.close();
      this.#tell(tailTrouble(path, error));
      return;
    }
    // A file that is rotated to another name that the pattern takes as well is read under its first.
    if (inodes.has(tail.inode)) {
      tail.close();
      return;
    }
    inodes.add(tail.inode);
    this.#files.set(path, { tail, lines, quietTicks: 0 });
  }

  #makeRows(): void {
    const touched = new Set<Seen>();
    for (const one of this.#iterations) {
      const key = `${one.path} ${one.rank} ${one.local}`;
      const seen = this.#seen.get(key);
      this.#rows.push(this.#row(one, seen));
      const next = seen ?? { iteration: -1, stampMs: NaN, batchMs: NaN, batchIteration: -1 };
      next.iteration = one.iteration;
      next.stampMs = one.stampMs;
      touched.add(next);
      this.#seen.set(key, next);
    }
    if (this.#seen.size > MOST_WRITERS) this.#seen.clear();
    if (this.#rotated.size > MOST_WRITERS) this.#rotated.clear();
    if (this.#allowed.size > MOST_WRITERS) this.#allowed.clear();
    for (const seen of touched) {
      seen.batchMs = this.#nowMs;
      seen.batchIteration = seen.iteration;
    }
    this.#iterations = [];
  }

  #row(one: LogIteration & { path: string }, before: Seen | undefined): LogRow {
    const { path, rank, local, iteration, stampMs } = one;
    const isNow = stampMs > this.#nowMs - NEAR_MS && stampMs < this.#nowMs + 1000;
    const endMs = isNow ? stampMs : this.#nowMs;
    let durationMs = one.ms;
    if (!(durationMs >= 0) && before !== undefined && iteration > before.iteration)
      durationMs = (stampMs - before.stampMs) / (iteration - before.iteration);
    if (!(durationMs >= 0) && before !== undefined && iteration > before.batchIteration)
      durationMs = (this.#nowMs - before.batchMs) / (iteration - before.batchIteration);
    return { path, rank, local, iteration, endMs, durationMs };
  }

  #failure(path: string, one: LogFailureLine): void {
    const key = `${path} ${one.rank} ${one.local}`;
    let share = this.#allowed.get(key);
    if (share === undefined || Math.abs(this.#nowMs - share.fromMs) >= MINUTE_MS) {
      share = { fromMs: this.#nowMs, told: 0, untold: share?.untold ?? 0 };
      this.#allowed.set(key, share);
    }
    if (share.told >= FAILURES_A_MINUTE) {
      share.untold++;
      return;
    }
    share.told++;
    this.#failures.push({ ...one, path, untold: share.untold });
    share.untold = 0;
  }

  #tell(line: string): void {
    if (this.#told.has(line)) return;
    // Rather once more after so many than never again.
    if (this.#told.size >= MOST_TOLD) this.#told.clear();
    this.#told.add(line);
    this.#troubles.push(line);
  }
}

/** Names looked at in one go: a pattern over a whole disk must not keep the agent from its work. */
const MOST_NAMES = 65_536;

interface GlobResult {
  readonly paths: readonly string[];
  /** Whether there was more than could be looked at. */
  readonly isCut: boolean;
}

/** Files that a pattern names: "*" and "?" within a name, at any depth of the path that the pattern spells out. */
export async function expandPattern(pattern: string, most: number): Promise<GlobResult> {
  const parts = resolve(pattern).split("/").slice(1);
  let folders = ["/"];
  let looked = 0;
  let isCut = false;
  for (const [depth, part] of parts.entries()) {
    const isLast = depth === parts.length - 1;
    const next: string[] = [];
    const wanted = /[*?]/.test(part) ? expressionOf(part) : null;
    for (const folder of folders) {
      if (wanted === null) {
        next.push(join(folder, part));
        continue;
      }
      for (const name of await namesIn(folder)) {
        if (++looked > MOST_NAMES || next.length >= most) {
          isCut = true;
          break;
        }
        if (wanted.test(name)) next.push(join(folder, name));
      }
    }
    folders = next;
    // One after the other: where storage hangs, one thread does.
    if (isLast) {
      folders = [];
      for (const path of next) if (await isThere(path)) folders.push(path);
    }
  }
  return { paths: folders.sort(), isCut };
}

function expressionOf(part: string): RegExp {
  const source = part
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*+/g, "[^/]*")
    .replaceAll("?", "[^/]");
  // A leading dot is never meant by a star, as in a shell.
  return new RegExp(`^${part.startsWith("*") || part.startsWith("?") ? "(?!\\.)" : ""}${source}$`);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch {
    return [];
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}
