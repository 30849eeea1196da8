/** Room and the right to write: the data folder of the service, and shared memory for rings. */
import {
  existsSync,
  mkdirSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { errorText } from "../../base/errors.ts";
import { type Line, linesOf } from "./line.ts";

interface FolderSeen {
  readonly what: "data folder" | "shared memory";
  readonly path: string;
  /** The service makes its folder where there is none. */
  readonly isThere: boolean;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Why a small file, or the folder itself, could not be written (ENOSPC, EDQUOT, EROFS, EACCES …); null where it could, or was not tried. */
  readonly writeFailure: string | null;
}

/** A service sets aside 8 MB; evidence of a large job takes some hundred. */
const LITTLE_BYTES = 1e9;
const NOTHING_BYTES = 64e6;
/** Eight rings of a machine take some ten megabytes. */
const LITTLE_SHARED_BYTES = 64e6;
const { ok, warning, broken, none } = linesOf("disk");

export function judgeDisk(folders: readonly FolderSeen[]): Line {
  if (folders.length === 0) return none("there is no data folder of a service on this machine");
  const failed = folders.find(({ writeFailure }) => writeFailure !== null);
  if (failed) return unwritable(failed);
  const full = folders.find(
    ({ what, freeBytes }) => freeBytes < (what === "data folder" ? NOTHING_BYTES : 1e6),
  );
  if (full) return broken(`${full.what} ${full.path} is full: ${roomOf(full)}`, fixFor(full));
  const little = folders.find(
    ({ what, freeBytes }) =>
      freeBytes < (what === "data folder" ? LITTLE_BYTES : LITTLE_SHARED_BYTES),
  );
  if (little)
    return warning(
      `${little.what} ${little.path} has little room: ${roomOf(little)}`,
      fixFor(little),
    );
  return ok(folders.map((one) => `${one.what} ${one.path}: ${roomOf(one)}`).join("; "));
}

function unwritable({ what, path, isThere, writeFailure }: FolderSeen): Line {
  const failure = writeFailure ?? "";
  if (!isThere)
    return broken(
      `${what} ${path} is not there and cannot be made: ${failure}`,
      `sudo install -d -o USER '${path}'    # USER: as whom the service runs`,
    );
  if (/EDQUOT|quota/i.test(failure))
    return broken(
      `the quota of ${what} ${path} is used up`,
      "quota -s    # raise it, or set retention in the service's configuration",
    );
  if (/EROFS|read-only/i.test(failure))
    return broken(`${what} ${path} is on a file system that is read-only`, `findmnt -T '${path}'`);
  if (/EACCES|EPERM/.test(failure))
    return warning(
      `${what} ${path} may not be written by this user`,
      `sudo -u "$(stat -c %U '${path}')" faultline doctor    # as the service's user`,
    );
  if (failure === NO_FOLDER)
    return broken(`${what} ${path} ${failure}`, `ls -l '${path}'    # then mend "data"`);
  return broken(`${what} ${path} cannot be written: ${failure}`, `df -h '${path}'`);
}

function fixFor({ what, path }: FolderSeen): string {
  return what === "data folder"
    ? `df -h '${path}'    # make room, or set retention in the service's configuration`
    : `df -h '${path}' && ls -l '${path}'    # rings of jobs that are over can go`;
}

function roomOf({ freeBytes, totalBytes }: FolderSeen): string {
  return `${sizeOf(freeBytes)} of ${sizeOf(totalBytes)} free`;
}

function sizeOf(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
}

const NO_FOLDER = "is no folder";
/** Enough to meet a quota. */
const TRIAL_BYTES = 64 << 10;

/** null where the file system does not say. */
export function lookAtDisk(what: FolderSeen["what"], path: string): FolderSeen | null {
  try {
    const { bavail, blocks, bsize } = statfsSync(path);
    return {
      what,
      path,
      isThere: true,
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
      // Rings are other programs' to write.
      writeFailure: what === "data folder" ? failureToWrite(path) : null,
    };
  } catch {
    return null;
  }
}

function failureToWrite(folder: string): string | null {
  const trial = join(folder, `.doctor-${process.pid}`);
  try {
    if (!statSync(folder).isDirectory()) return NO_FOLDER;
    writeFileSync(trial, Buffer.alloc(TRIAL_BYTES), { mode: 0o600, flush: true });
    return null;
  } catch (error) {
    return errorText(error);
  } finally {
    if (existsSync(trial)) rmSync(trial);
  }
}

/** A folder that the service would make: null where it could. */
export function lookWhereItWouldBe(path: string): FolderSeen | null {
  let missing = path;
  while (!existsSync(dirname(missing))) missing = dirname(missing);
  try {
    mkdirSync(missing);
    rmdirSync(missing);
  } catch (error) {
    const seen = { what: "data folder", path, isThere: false } as const;
    return { ...seen, freeBytes: 0, totalBytes: 0, writeFailure: errorText(error) };
  }
  return null;
}
