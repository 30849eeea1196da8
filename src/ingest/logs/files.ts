/** The only place where log files are touched. Whatever is wrong with one is a sentence, never an exception. */
import { closeSync, createReadStream, openSync, readSync, type Dirent } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { UserError } from "../../base/errors.ts";
import { NEWLINE } from "./scan-bytes.ts";

const CHUNK_BYTES = 1 << 20;
/** Beyond a part's end, to the end of its last line. */
const MOST_OVERRUN = 64 << 20;
const MOST_FILES = 100_000;
/** What lies beside logs in a job's folder. */
const NOT_A_LOG =
  /^\.|\.(?:py|pyc|sh|json|ya?ml|toml|cfg|ini|md|csv|tsv|parquet|arrow|pt|pth|ckpt|bin|idx|safetensors|npy|npz|pkl|pickle|h5|png|jpe?g|gif|svg|pdf|html?|css|js|ts|so|o|a|cu|cpp|cc|h|tar|tgz|zip|zst|xz|bz2|7z|db|sqlite|pb|trace|nsys-rep|qdrep|lock)$|\.tar\.\w+$/i;

/** By its name; asked of what lies in folders, not of files that somebody names. */
export function mayBeLog(name: string): boolean {
  return !NOT_A_LOG.test(name);
}

/** The files themselves, and of folders all that may be logs, in the order of their names. */
export async function findLogFiles(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const known = await stat(path).catch(() => null);
    if (!known)
      throw new UserError(`${path} does not exist`, "name log files or folders of them", 3);
    if (known.isDirectory()) await collect(path, found);
    else if (known.isFile()) found.push(path);
    else
      throw new UserError(
        `${path} is neither a file nor a folder`,
        "save a pipe to a file first, and name that",
        3,
      );
  }
  return [...new Set(found)];
}

/** By their names: what is inside is looked at when it is read. */
const ARCHIVE = /\.(?:tar|tgz|tar\.gz)$/i;

/** Whether there are archives among them, or in folders of them: those are read as streams. */
export async function hasArchives(paths: readonly string[]): Promise<boolean> {
  for (const path of paths) {
    if (ARCHIVE.test(path)) return true;
    const names = await readdir(path, { recursive: true }).catch(() => []);
    if (names.some((name) => ARCHIVE.test(name))) return true;
  }
  return false;
}

/** What cannot be opened is found, too, so that whoever reads it says so. */
async function collect(folder: string, found: string[]): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => null);
  if (!entries) {
    found.push(folder);
    return;
  }
  entries.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  for (const entry of entries) {
    if (found.length >= MOST_FILES) return;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!entry.name.startsWith(".")) await collect(path, found);
    } else if (mayBeLog(entry.name) && (entry.isFile() || (await isLinkToRead(entry, path))))
      found.push(path);
  }
}

/** Links to files are followed, to folders not: those may lead round in circles. Those to nothing are told of. */
async function isLinkToRead(entry: Dirent, path: string): Promise<boolean> {
  if (!entry.isSymbolicLink()) return false;
  return await stat(path).then(
    (info) => info.isFile(),
    () => true,
  );
}

/** Folders that cannot be listed and links to nothing, a sentence each: other walks pass them by. */
export async function unreadable(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) if (await isFolder(path)) await collect(path, found);
  const sentences: string[] = [];
  for (const path of found) {
    if (await isFile(path)) continue;
    const head = await readHead(path, 0);
    if (typeof head === "string") sentences.push(`${path}: ${head}`);
  }
  return sentences;
}

async function isFile(path: string): Promise<boolean> {
  return await stat(path).then(
    (info) => info.isFile(),
    () => false,
  );
}

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

export interface FileHead {
  readonly size: number;
  readonly modifiedMs: number;
  readonly isGzip: boolean;
  readonly bytes: Uint8Array;
}

/** The beginning of a file, or a sentence about why there is none. */
export async function readHead(path: string, most: number): Promise<FileHead | string> {
  try {
    const file = await open(path);
    try {
      const { size, mtimeMs } = await file.stat();
      const buffer = Buffer.alloc(Math.min(most, size));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      const bytes = buffer.subarray(0, bytesRead);
      const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
      return { size, modifiedMs: mtimeMs, isGzip, bytes };
    } finally {
      await file.close();
    }
  } catch (error) {
    return whyUnread(error as NodeJS.ErrnoException);
  }
}

function whyUnread({ code, message }: NodeJS.ErrnoException): string {
  if (code === "EACCES" || code === "EPERM") return "it may not be read: permission denied";
  if (code === "ENOENT") return "it is not there (any more)";
  if (code === "EISDIR") return "it is a folder that could not be listed";
  return `it could not be read: ${message}`;
}

/**
 * Hands over the lines that begin in [from, to), the last one to its end, and says what was wrong. A file may have grown
 * since: what was written meanwhile is not read. Yields to others after every chunk.
 */
export async function readPart(
  path: string,
  from: number,
  to: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<string[]> {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return ["it vanished before it was read"];
  }
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    let at = from;
    let isAtLine = from === 0;
    if (!isAtLine) at = from - 1;
    while (at < to + MOST_OVERRUN) {
      const got = readSync(fd, buffer, 0, CHUNK_BYTES, at);
      if (got === 0) return at < to ? ["it became shorter while it was read"] : [];
      let start = 0;
      if (!isAtLine) {
        start = buffer.subarray(0, got).indexOf(NEWLINE) + 1;
        if (start === 0 || at + start >= to) {
          if (start > 0) return [];
          at += got;
          if (at >= to) return [];
          continue;
        }
        isAtLine = true;
      }
      // Up to the end of the line that begins before `to`.
      const last = Math.max(start, to - 1 - at);
      const newline = last < got ? buffer.subarray(0, got).indexOf(NEWLINE, last) : -1;
      onChunk(buffer.subarray(start, newline < 0 ? got : newline + 1));
      if (newline >= 0) return [];
      at += got;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return [];
  } catch (error) {
    return [`it could not be read to its end: ${(error as Error).message}`];
  } finally {
    closeSync(fd);
  }
}

export async function readGzip(
  path: string,
  onChunk: (chunk: Uint8Array) => void,
): Promise<string[]> {
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  file.on("error", (error) => gunzip.destroy(error));
  try {
    for await (const chunk of file.pipe(gunzip)) onChunk(chunk as Uint8Array);
    return [];
  } catch (error) {
    return [`it could not be unpacked to its end: ${(error as Error).message}`];
  } finally {
    file.destroy();
  }
}
