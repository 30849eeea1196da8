/** What this user may see of the machine. */
import { closeSync, constants, existsSync, lstatSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { PermissionsSeen } from "./permissions.ts";

export interface Places {
  readonly proc: string;
  /** Where ring folders of all users are. */
  readonly shared: string;
  readonly kernelLog: string;
}

export function lookAtPermissions(places: Places, hiddenProcesses: number): PermissionsSeen {
  return {
    isRoot: process.getuid?.() === 0,
    foreignFolders: foreignFolders(places.shared),
    seesOthers: existsSync(join(places.proc, "1", "stat")),
    hiddenProcesses,
    kernelLog: cannotOpen(places.kernelLog),
  };
}

/** "EPERM", or another error of open(2). */
function cannotOpen(path: string): string | null {
  try {
    closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown error";
  }
}

function foreignFolders(shared: string): string[] {
  const names = tried(() => readdirSync(shared)) ?? [];
  return names
    .filter((name) => /^faultline-\d{1,10}$/.test(name))
    .map((name) => join(shared, name))
    .filter((path) => tried(() => lstatSync(path).isDirectory()) === true)
    .filter((path) => tried(() => readdirSync(path)) === null);
}

function tried<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
