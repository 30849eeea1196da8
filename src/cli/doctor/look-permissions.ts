/** What this user may see of the machine. */
import { existsSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { kernelLog } from "../../live/agent/kernel-log.ts";
import type { PermissionsSeen } from "./permissions.ts";

export interface Places {
  readonly proc: string;
  /** Where ring folders of all users are. */
  readonly shared: string;
  readonly kernelLog: string;
}

export function lookAtPermissions(places: Places, hiddenProcesses: number): PermissionsSeen {
  // Nothing is newer than the end of time: whether it opens is all that counts.
  const { trouble } = kernelLog(Infinity, 0, places.kernelLog);
  return {
    isRoot: process.getuid?.() === 0,
    foreignFolders: foreignFolders(places.shared),
    seesOthers: existsSync(join(places.proc, "1", "stat")),
    hiddenProcesses,
    kernelLog: trouble?.replace(/^kernel log: /, "") ?? null,
  };
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
