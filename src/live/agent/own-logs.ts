/**
 * The logs that ranks write, found by what their processes have open: descriptors 1 and 2. Nobody has to name them. Where a
 * rank writes into a pipe, its launcher is looked at; where nothing is a file, that is said.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  type Stats,
} from "node:fs";
import { basename, join } from "node:path";
import { parentOf } from "./process-state.ts";
import { openingError } from "./ring-file.ts";

/** Descriptors of a launcher, and of its launcher, are looked at where a rank writes into a pipe. */
const MOST_PARENTS = 3;
const NEWLINE = 10;

export interface OwnLogs {
  /** A rank's own file is named after the rank; one that several share keeps its name. */
  readonly files: readonly { readonly name: string; readonly bytes: Buffer }[];
  readonly troubles: readonly string[];
}

interface OpenFile {
  readonly key: string;
  readonly path: string;
  /** Where it can be opened. */
  readonly descriptor: string;
  readonly ranks: Set<number>;
}

/** The last bytes of each file; `known` are inodes ("dev ino") of logs that are followed anyway. */
export function ownLogs(
  ranks: readonly { readonly rank: number; readonly pid: number }[],
  mostBytes: number,
  known: ReadonlySet<string>,
  proc: string,
): OwnLogs {
  const files = new Map<string, OpenFile>();
  const elsewhere = new Map<string, number[]>();
  for (const { rank, pid } of ranks) {
    const { found, others } = outputsOf(pid, proc);
    for (const one of found) {
      const file = files.get(one.key) ?? { ...one, ranks: new Set() };
      file.ranks.add(rank);
      files.set(one.key, file);
    }
    for (const what of found.length === 0 ? others : [])
      elsewhere.set(what, [...(elsewhere.get(what) ?? []), rank]);
  }
  const troubles = [...elsewhere].map(
    ([what, those]) =>
      `rank ${those.join(", ")}: output goes to ${what}, not to a file; name its log with --log`,
  );
  const ends: { name: string; bytes: Buffer }[] = [];
  for (const { key, path, descriptor, ranks: writers } of files.values()) {
    if (known.has(key)) continue;
    try {
      const [only] = writers;
      const name = writers.size === 1 ? `rank${only}.${basename(path)}` : basename(path);
      const bytes = endOf(descriptor, mostBytes);
      if (bytes.length > 0) ends.push({ name, bytes });
    } catch (error) {
      troubles.push(`${path}: ${openingError(error)}`);
    }
  }
  return { files: ends, troubles };
}

type Output = Omit<OpenFile, "ranks">;

/** Of the process, or of the nearest of those that started it. */
function outputsOf(pid: number, proc: string): { found: Output[]; others: string[] } {
  let others: string[] = [];
  for (let [one, step] = [pid, 0]; one > 1 && step <= MOST_PARENTS; step++) {
    const outputs = [1, 2].map((fd) => outputOf(one, fd, proc));
    const found = outputs.filter((output) => typeof output !== "string");
    if (found.length > 0) return { found, others };
    if (step === 0) others = [...new Set(outputs.filter((output) => typeof output === "string"))];
    // A terminal, or nothing at all, is where output ends; only a pipe has somebody behind it.
    if (!others.includes("a pipe")) break;
    one = parentOf(one, proc);
  }
  return { found: [], others };
}

/** The file, or what it is instead. */
function outputOf(pid: number, fd: number, proc: string): Output | string {
  const descriptor = join(proc, String(pid), "fd", String(fd));
  let path: string;
  try {
    path = readlinkSync(descriptor);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES"
      ? "where this user may not look"
      : "nothing";
  }
  if (path.startsWith("pipe:")) return "a pipe";
  if (path.startsWith("socket:")) return "a socket";
  if (path === "/dev/null") return path;
  if (path.startsWith("/dev/")) return "a terminal";
  // Read by us, who may read more than the process: only what it has open for writing is its output.
  if (!isWritten(pid, fd, proc)) return "a file that it does not write";
  try {
    const open = openSync(descriptor, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const info = fstatSync(open);
      return info.isFile() ? { key: inodeOf(info), path, descriptor } : "no plain file";
    } finally {
      closeSync(open);
    }
  } catch (error) {
    return `a file that cannot be read (${openingError(error)})`;
  }
}

export function inodeOf({ dev, ino }: Pick<Stats, "dev" | "ino">): string {
  return `${dev} ${ino}`;
}

function isWritten(pid: number, fd: number, proc: string): boolean {
  try {
    const about = readFileSync(join(proc, String(pid), "fdinfo", String(fd)), "latin1");
    const flags = Number.parseInt(/^flags:\s*([0-7]+)$/m.exec(about)?.[1] ?? "", 8);
    const access = flags & (constants.O_WRONLY | constants.O_RDWR);
    return access !== 0 && (flags & O_PATH) === 0;
  } catch {
    return false;
  }
}

/** Opened to name a file, not to read or write it: anybody may, of any file (open(2)). */
const O_PATH = 0o10000000;

function endOf(descriptor: string, most: number): Buffer {
  const fd = openSync(descriptor, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(fd);
    const from = Math.max(0, size - most);
    const bytes = Buffer.alloc(size - from);
    const got = bytes.length === 0 ? 0 : readSync(fd, bytes, 0, bytes.length, from);
    const whole = bytes.subarray(0, got);
    return from === 0 ? whole : whole.subarray(whole.indexOf(NEWLINE) + 1);
  } finally {
    closeSync(fd);
  }
}
