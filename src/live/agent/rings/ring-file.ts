/**
 * A ring on this machine, read and asked by file. Node has no mmap; read(2) and write(2) on a shared memory file work on
 * the same pages that the writer has mapped, so each sees what the other wrote.
 */
import { errorText } from "../../../base/errors.ts";
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { HEADER_BYTES } from "../../../ingest/probe-ring/layout.ts";
import {
  headerDefect,
  readHeader,
  readProgress,
  type RingHeader,
  type RingProgress,
} from "./ring-header.ts";

export interface RingFile {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly header: RingHeader;
  /** As it was when the ring was found. */
  readonly progress: RingProgress;
}

/** Never a link: whoever may write into the folder could send us anywhere. Never waits: it may be a pipe. */
const SAFELY = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A ring, or what is wrong with the file in a few words. */
export function inspectRing(path: string): RingFile | string {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | SAFELY);
  } catch (error) {
    return openingError(error);
  }
  try {
    const info = fstatSync(fd);
    if (!info.isFile()) return "is not a plain file";
    const bytes = Buffer.alloc(HEADER_BYTES);
    const have = readSync(fd, bytes, 0, HEADER_BYTES, 0);
    const defect = headerDefect(bytes.subarray(0, have), info.size);
    if (defect !== null) return defect;
    return {
      path,
      name: basename(path),
      sizeBytes: info.size,
      header: readHeader(bytes),
      progress: readProgress(bytes),
    };
  } catch (error) {
    return errorText(error);
  } finally {
    closeSync(fd);
  }
}

export function openingError(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ELOOP") return "is a link; links are not followed";
  if (code === "EACCES" || code === "EPERM")
    return "may not be read by this user; run as the job's user or as root";
  if (code === "ENOENT") return "is no longer there";
  return errorText(error);
}

export function openRing(ring: Pick<RingFile, "path">): number {
  return openSync(ring.path, constants.O_RDONLY | SAFELY);
}

/** Fills the buffer from the offset; false where the file is shorter. */
export function readFully(fd: number, into: Buffer, offset: number): boolean {
  for (let at = 0; at < into.length;) {
    const got = readSync(fd, into, at, into.length - at, offset + at);
    if (got === 0) return false;
    at += got;
  }
  return true;
}

/** The header as it is now; null where the file has been cut. */
export function headerNow(fd: number): Buffer | null {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES);
  return readFully(fd, bytes, 0) ? bytes : null;
}

export interface Word {
  readonly at: number;
  readonly bytes: Buffer;
}

/** Writes words in the order given, each with one write(2). */
export function writeWords(path: string, words: readonly Word[]): void {
  const fd = openSync(path, constants.O_RDWR | SAFELY);
  try {
    if (!fstatSync(fd).isFile()) throw new Error("is not a plain file");
    for (const { at, bytes } of words) writeSync(fd, bytes, 0, bytes.length, at);
  } finally {
    closeSync(fd);
  }
}
