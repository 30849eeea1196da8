/**
 * From paths to streams of bytes: folders are walked, .gz is unpacked, .tar members become files of
 * their own. Recognised by content, never by ending. Everything streams; nothing is unpacked to disk.
 */
import { createReadStream, fstatSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { errorText, UserError } from "../base/errors.ts";
import type { Defect } from "../model/reading.ts";
import { isRing, PAGE_BYTES, promisedBytes } from "./probe-ring/ring-bytes.ts";
import { HEAD_BYTES, type Head } from "./reader.ts";
import { looksLikeTar, tarMembers } from "./tar.ts";

/** Standard input, where a path is wanted. */
export const STDIN = "-";

/** A file on disk that was found under the paths the user gave, or a pipe that is one of them. */
export interface FoundFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** When it was last written to, milliseconds since 1970: logs may not say which year it is. */
  readonly modifiedMs: number;
  /** Whether the user named it, and not a folder that it lies in. */
  readonly isGiven: boolean;
  /** Its bytes come once, and nobody knows how many: standard input, a named pipe, `<(…)` of a shell. */
  readonly isPipe?: boolean;
}

/** A stream of bytes whose format is to be found. */
export interface SourceFile {
  readonly path: string;
  readonly head: Head;
  /** When a member of an archive was last written to, milliseconds since 1970, as the archive tells. */
  readonly modifiedMs?: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Folders that hold nothing of a job and may hold millions of files. */
const SKIPPED_FOLDERS = new Set([".git", "node_modules", "__pycache__"]);
/** What `--out` and the service write beside each other: of two that lie in one folder, neither is of the job. */
const REPORT = ["report.html", "verdict.json"];
const OF_REPORT = new Set([...REPORT, "ticket.md", "picture.json"]);
const MAX_FILES = 1_000_000;
/** What unpacks to more than this many times its size on disk, and to more than the size below, is a bomb. */
const MAX_EXPANSION = 300;
const EXPANSION_FREE_BYTES = 1024 ** 3;
const MAX_NESTING = 4;

/**
 * Every plain file under the paths, sorted, each once, and the pipes among the paths themselves: those inside a folder are
 * somebody else's. Links to files are followed, to folders not. Hidden files are other programs' notes (the service's own
 * marker among them), and a report of Faultline's tells nothing of the job: both are read only where they are given.
 */
export async function findFiles(paths: readonly string[]): Promise<FoundFile[]> {
  const found = new Map<string, FoundFile>();
  const cannot = (path: string, error: NodeJS.ErrnoException): UserError => {
    const why = error.code === "ENOENT" ? "no such file or folder" : error.message;
    return new UserError(`${path}: ${why}`, "give files or folders of a job that can be read", 3);
  };
  const visit = async (path: string, isGiven: boolean): Promise<void> => {
    if (isGiven && path === STDIN) {
      const { mtimeMs } = fstatSync(0);
      found.set(path, { path, sizeBytes: 0, modifiedMs: mtimeMs, isGiven, isPipe: true });
      return;
    }
    const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (isGiven) throw cannot(path, error);
      return null;
    });
    if (info?.isDirectory()) {
      const entries = await readdir(path, { withFileTypes: true }).catch(
        (error: NodeJS.ErrnoException) => {
          if (isGiven) throw cannot(path, error);
          return [];
        },
      );
      const names = new Set(entries.map(({ name }) => name));
      const hasReport = REPORT.every((name) => names.has(name));
      for (const entry of entries) {
        if (entry.isDirectory() && SKIPPED_FOLDERS.has(entry.name)) continue;
        if (!entry.isDirectory() && entry.name.startsWith(".")) continue;
        if (hasReport && OF_REPORT.has(entry.name)) continue;
        const below = join(path, entry.name);
        if (entry.isSymbolicLink() && !(await isFile(below))) continue;
        await visit(below, false);
      }
    } else if (info?.isFile() && found.size < MAX_FILES) {
      const key = resolve(path);
      if (!found.has(key))
        found.set(key, { path, sizeBytes: info.size, modifiedMs: info.mtimeMs, isGiven });
    } else if (isGiven && info?.isFIFO()) {
      const { mtimeMs: modifiedMs } = info;
      found.set(resolve(path), { path, sizeBytes: 0, modifiedMs, isGiven, isPipe: true });
    } else if (isGiven) {
      throw new UserError(
        `${path}: neither a file nor a folder`,
        "give files or folders of a job",
        3,
      );
    }
  };
  for (const path of paths) await visit(path, true);
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

async function isFile(path: string): Promise<boolean> {
  return await stat(path).then(
    (info) => info.isFile(),
    () => false,
  );
}

/** Opens a file, through gzip and tar, and hands each plain stream inside it to `visit`. */
export async function openFile(
  path: string,
  visit: (file: SourceFile) => Promise<void>,
  onDefect: (defect: Defect) => void,
  /** Where that is known. */
  sizeBytes = Infinity,
): Promise<void> {
  const onDisk = { bytes: 0 };
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of sizeBytes <= SMALL_BYTES ? whole(path) : streamOf(path)) {
      onDisk.bytes += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  };
  await unwrap({ path, onDisk, nesting: 0, visit, onDefect }, counted());
}

/** Read at once: of a thousand small files streams take as long as what is in them. */
const SMALL_BYTES = 1 << 20;

async function* whole(path: string): AsyncGenerator<Uint8Array> {
  yield await readFile(path);
}

function streamOf(path: string): Readable {
  // Node's own stream of standard input also copes with one that does not block.
  return path === STDIN ? process.stdin : createReadStream(path, { highWaterMark: 1 << 18 });
}

interface Wrapping {
  readonly path: string;
  /** What it is called on the disk, where that differs: "hang3.tar.gz". */
  readonly archive?: string;
  readonly modifiedMs?: number;
  /** Bytes read from the disk so far, by the outermost layer. */
  readonly onDisk: { bytes: number };
  readonly nesting: number;
  readonly visit: (file: SourceFile) => Promise<void>;
  readonly onDefect: (defect: Defect) => void;
}

async function unwrap(wrapping: Wrapping, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const { archive, ...inArchive } = wrapping;
  const { path, nesting, onDisk } = wrapping;
  const defect = (what: string): void => wrapping.onDefect({ file: path, what });
  const { head, chunks } = await peek(bytes, defect);
  const isGzip = head.length >= 2 && head[0] === 0x1f && head[1] === 0x8b;
  if ((isGzip || looksLikeTar(head)) && nesting >= MAX_NESTING) {
    defect("is compressed too many times over; not read");
  } else if (isGzip) {
    const inner = gunzip(chunks, onDisk, defect);
    // A file's name tells its rank, without the ".gz"; an archive's is part of a path that people open.
    const bare = { path: path.replace(/\.gz$/, ""), archive: path };
    await unwrap({ ...wrapping, ...bare, nesting: nesting + 1 }, inner);
  } else if (looksLikeTar(head)) {
    for await (const { name, modifiedMs, chunks: inside } of tarMembers(chunks, defect)) {
      if (/(?:^|\/)\.[^/]+$/.test(name)) continue;
      const member = { path: `${archive ?? path}/${name}`, modifiedMs, nesting: nesting + 1 };
      await unwrap({ ...inArchive, ...member }, inside);
    }
  } else {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const text = Buffer.from(head.buffer, head.byteOffset, head.length).toString("latin1");
    // A ring says how long it is: behind that may lie a terabyte of nothing. A page more, so that its reader can tell.
    const some = isRing(head) ? upTo(promisedBytes(head) + PAGE_BYTES, chunks) : chunks;
    const { modifiedMs } = wrapping;
    const when = modifiedMs === undefined ? {} : { modifiedMs };
    await wrapping.visit({ path, head: { name, bytes: head, text }, ...when, chunks: some });
  }
}

/** Chunks until there are more bytes than that; the rest is not asked for. */
async function* upTo(most: number, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let have = 0;
  for await (const chunk of chunks) {
    yield chunk;
    have += chunk.length;
    if (have > most) return;
  }
}

/** The first bytes of a stream, and the stream with them still in it. A read error ends it. */
async function peek(
  bytes: AsyncIterable<Uint8Array>,
  onDefect: (what: string) => void,
): Promise<{ head: Uint8Array; chunks: AsyncIterable<Uint8Array> }> {
  const iterator = bytes[Symbol.asyncIterator]();
  const next = async (): Promise<Uint8Array | null> => {
    try {
      const { value, done } = await iterator.next();
      return done ? null : value;
    } catch (error) {
      onDefect(`cannot be read to the end: ${errorText(error)}`);
      return null;
    }
  };
  const first: Uint8Array[] = [];
  let have = 0;
  let ended = false;
  while (have < HEAD_BYTES && !ended) {
    const chunk = await next();
    if (chunk === null) ended = true;
    else {
      first.push(chunk);
      have += chunk.length;
    }
  }
  const head = first.length === 1 ? first[0]! : Buffer.concat(first);
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      if (head.length > 0) yield head;
      while (!ended) {
        const chunk = await next();
        if (chunk === null) return;
        yield chunk;
      }
    } finally {
      // A reader that has enough closes its source.
      await iterator.return?.();
    }
  }
  return { head: head.subarray(0, HEAD_BYTES), chunks: whole() };
}

async function* gunzip(
  chunks: AsyncIterable<Uint8Array>,
  onDisk: { readonly bytes: number },
  onDefect: (what: string) => void,
): AsyncGenerator<Uint8Array> {
  let unpacked = 0;
  const source = Readable.from(chunks);
  const stream = createGunzip({ chunkSize: 1 << 18 });
  source.on("error", (error) => stream.destroy(error));
  source.pipe(stream);
  try {
    for await (const chunk of stream) {
      unpacked += (chunk as Buffer).length;
      if (unpacked > EXPANSION_FREE_BYTES && unpacked > onDisk.bytes * MAX_EXPANSION) {
        onDefect("grows without end when unpacked; stopped there");
        return;
      }
      yield chunk as Buffer;
    }
  } catch (error) {
    onDefect(`gzip is damaged or cut off: ${errorText(error)}`);
  } finally {
    source.destroy();
    stream.destroy();
  }
}
