/** Room in a folder, and whether this user can write there. */
import { existsSync, mkdirSync, rmdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorText } from "../../base/errors.ts";
import type { FolderSeen } from "./disk.ts";

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
      writeFailure: what === "data folder" ? writeFailure(path) : null,
    };
  } catch {
    return null;
  }
}

function writeFailure(folder: string): string | null {
  const trial = join(folder, `.doctor-${process.pid}`);
  try {
    writeFileSync(trial, Buffer.alloc(TRIAL_BYTES), { mode: 0o600, flush: true });
    return null;
  } catch (error) {
    return errorText(error);
  } finally {
    rmSync(trial, { force: true });
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
