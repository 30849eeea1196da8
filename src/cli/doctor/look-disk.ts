/** Room in a folder, and whether this user can write there. */
import { statfsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
