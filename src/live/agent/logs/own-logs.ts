/**
 * The logs that ranks write, found by what their processes have open: descriptors 1 and 2. Nobody has to name them. Where a
 * rank writes into a pipe, its launcher is looked at; where nothing is a file, that is said.
 */
import { constants, readFileSync, readlinkSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join } from "node:path";
import { endOf } from "./log-tail.ts";
import { parentOf } from "../process-state.ts";
import { openingError } from "../rings/ring-file.ts";
import type { SlowStorage } from "../evidence/slow-storage.ts";

/** Descriptors of a launcher, and of its launcher, are looked at where a rank writes into a pipe. */
const MOST_PARENTS = 3;

export interface OwnLogs {
  /** A rank's own file is named after the rank; one that several share keeps its name. */
  readonly files: readonly { readonly name: string; readonly bytes: Buffer }[];
  readonly troubles: readonly string[];
}

interface Place {
  readonly proc: string;
  readonly storage: SlowStorage;
}

interface OpenFile {
  readonly key: string;
  readonly path: string;
  /** Where it can be opened. */
  readonly descriptor: string;
  readonly ranks: Set<number>;
}

/** The last bytes of each file; `known` are inodes ("dev ino") of logs that are followed anyway. */
export async function ownLogs(
  ranks: readonly { readonly rank: number; readonly pid: number }[],
  mostBytes: number,
  known: ReadonlySet<string>,
  { proc, storage }: Place,
): Promise<OwnLogs> {
  const files = new Map<string, OpenFile>();
  const elsewhere = new Map<string, number[]>();
  for (const { rank, pid } of ranks) {
    const { found, others } = await outputsOf(pid, { proc, storage });
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
      const bytes = await storage.read(path, () => readEnd(descriptor, mostBytes));
      if (bytes.length > 0) ends.push({ name, bytes });
    } catch (error) {
      troubles.push(`${path}: ${openingError(error)}`);
    }
  }
  return { files: ends, troubles };
}

type Output = Omit<OpenFile, "ranks">;

/** Of the process, or of the nearest of those that started it. */
async function outputsOf(
  pid: number,
  place: Place,
): Promise<{ found: Output[]; others: string[] }> {
  let others: string[] = [];
  for (let [one, step] = [pid, 0]; one > 1 && step <= MOST_PARENTS; step++) {
    const outputs = [await outputOf(one, 1, place), await outputOf(one, 2, place)];
    const found = outputs.filter((output) => typeof output !== "string");
    if (found.length > 0) return { found, others };
    if (step === 0) others = [...new Set(outputs.filter((output) => typeof output === "string"))];
    // A terminal, or nothing at all, is where output ends; only a pipe has somebody behind it.
    if (!others.includes("a pipe")) break;
    one = parentOf(one, place.proc);
  }
  return { found: [], others };
}

/** The file, or what it is instead. */
async function outputOf(
  pid: number,
  fd: number,
  { proc, storage }: Place,
): Promise<Output | string> {
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
    const inode = await storage.read(path, () => inodeAt(descriptor));
    return inode === null ? "no plain file" : { key: inode, path, descriptor };
  } catch (error) {
    return `a file that cannot be read (${openingError(error)})`;
  }
}

/** As LogTail names it; null for what is no plain file. */
async function inodeAt(descriptor: string): Promise<string | null> {
  const file = await open(descriptor, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const info = await file.stat({ bigint: true });
    return info.isFile() ? `${info.dev} ${info.ino}` : null;
  } finally {
    await file.close();
  }
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

async function readEnd(descriptor: string, most: number): Promise<Buffer> {
  const file = await open(descriptor, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    return await endOf(file, most);
  } finally {
    await file.close();
  }
}
