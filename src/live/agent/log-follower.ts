/** The logs that patterns name, followed as they grow: iterations with their times, and failures, a few a minute. */
import { lstatSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { LiveLogLines, type LogFailureLine, type LogIteration, type Writer } from "./log-lines.ts";
import { LogTail, tailTrouble } from "./log-tail.ts";

/** Files are looked for once in so many ticks. */
const LOOK_EVERY = 5;
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

  constructor(patterns: readonly string[]) {
    this.#patterns = patterns;
  }

  tick(nowMs: number): LogTick {
    this.#nowMs = nowMs;
    const troubles: string[] = [];
    if (this.#ticks % LOOK_EVERY === 0) this.#look(troubles);
    this.#ticks++;
    for (const one of this.#files.values()) {
      const skipped = one.tail.skipped;
      one.quietTicks = one.tail.poll() ? 0 : one.quietTicks + 1;
      if (one.quietTicks === REST_TICKS) one.lines.rest();
      if (one.tail.skipped > skipped)
        this.#tell(`${one.tail.path}: grows faster than it is read; parts are skipped`, troubles);
    }
    const rows = this.#rows();
    const failures = this.#failures;
    this.#failures = [];
    return { rows, failures, troubles };
  }

  /** The last bytes of the logs of some ranks, or of all. */
  ends(ranks: readonly number[] | null, bytes: number): { path: string; bytes: Buffer }[] {
    return [...this.#files.values()].flatMap(({ tail, lines }) => {
      if (ranks !== null && lines.fileRank >= 0 && !ranks.includes(lines.fileRank)) return [];
      try {
        return [{ path: tail.path, bytes: tail.end(bytes) }];
      } catch {
        return [];
      }
    });
  }

  close(): void {
    for (const { tail } of this.#files.values()) tail.close();
    this.#files.clear();
  }

  #look(troubles: string[]): void {
    const inodes = new Set([...this.#files.values()].map(({ tail }) => tail.inode));
    const present = new Set<string>();
    for (const pattern of this.#patterns) {
      const { paths, isCut } = expandPattern(pattern, MOST_FILES);
      if (isCut) this.#tell(`${pattern}: matches more files than are followed`, troubles);
      if (paths.length === 0) this.#tell(`${pattern}: no such file yet`, troubles);
      for (const path of paths) {
        present.add(path);
        if (this.#files.has(path)) continue;
        if (this.#files.size >= MOST_FILES) {
          this.#tell(`more than ${MOST_FILES} logs: the others are not followed`, troubles);
          continue;
        }
        this.#follow(path, inodes, troubles);
      }
    }
    // Gone under its name, and nobody writes it any more.
    for (const [path, { tail, quietTicks }] of this.#files) {
      if (present.has(path) || quietTicks < LOOK_EVERY) continue;
      tail.close();
      this.#files.delete(path);
    }
  }

  #follow(path: string, inodes: ReadonlySet<string>, troubles: string[]): void {
    const lines = new LiveLogLines(
      path,
      (one) => this.#iterations.push({ ...one, path }),
      (one) => this.#failure(path, one),
    );
    try {
      const tail = new LogTail(
        path,
        (line) => lines.line(line),
        (inode, read) => this.#rotated.set(inode, read),
      );
      // A file that is rotated to another name that the pattern takes as well is read under its first.
      if (inodes.has(tail.inode)) {
        tail.close();
        return;
      }
      const read = this.#rotated.get(tail.inode);
      if (read !== undefined) tail.skipTo(read);
      else if (this.#ticks === 0) tail.skipTo();
      this.#files.set(path, { tail, lines, quietTicks: 0 });
    } catch (error) {
      this.#tell(tailTrouble(path, error), troubles);
    }
  }

  #rows(): LogRow[] {
    const rows: LogRow[] = [];
    const touched = new Set<Seen>();
    for (const one of this.#iterations) {
      const key = `${one.path} ${one.rank} ${one.local}`;
      const seen = this.#seen.get(key);
      rows.push(this.#row(one, seen));
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
    return rows;
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

  #tell(line: string, troubles: string[]): void {
    if (this.#told.has(line) || this.#told.size > 10_000) return;
    this.#told.add(line);
    troubles.push(line);
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
export function expandPattern(pattern: string, most: number): GlobResult {
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
      for (const name of namesIn(folder)) {
        if (++looked > MOST_NAMES || next.length >= most) {
          isCut = true;
          break;
        }
        if (wanted.test(name)) next.push(join(folder, name));
      }
    }
    folders = isLast ? next.filter(isThere) : next;
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

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
