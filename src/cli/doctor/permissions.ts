/** What this user may see: processes of other users, and the kernel's log. */
import { closeSync, constants, existsSync, lstatSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Line, linesOf } from "./line.ts";

interface PermissionsSeen {
  readonly isRoot: boolean;
  /** Ring folders of other users, which this user cannot look into. */
  readonly foreignFolders: readonly string[];
  /** Whether /proc shows processes of others (hidepid). */
  readonly seesOthers: boolean;
  /** Training processes whose environment may not be read. */
  readonly hiddenProcesses: number;
  /** Why /dev/kmsg cannot be read; null where it can. */
  readonly kernelLog: string | null;
}

const { ok, warning } = linesOf("permissions");
const AS_ROOT = "sudo faultline doctor    # agents for jobs of several users run as root, too";

export function judgePermissions(seen: PermissionsSeen): Line {
  if (seen.foreignFolders.length > 0)
    return warning(
      `jobs of other users write rings that this user cannot read: ${seen.foreignFolders.join(", ")}`,
      AS_ROOT,
    );
  if (seen.hiddenProcesses > 0)
    return warning(
      `the environment of ${seen.hiddenProcesses} ${seen.hiddenProcesses === 1 ? "process" : "processes"} of this user may not be read`,
      "sysctl kernel.yama.ptrace_scope    # in a container: add the capability SYS_PTRACE",
    );
  if (!seen.seesOthers)
    return warning(
      "/proc hides processes of other users, so a dead rank looks like a silent one",
      "sudo mount -o remount,hidepid=0 /proc    # or hostPID: true in Kubernetes, or run the agent as root",
    );
  if (seen.kernelLog !== null)
    return warning(
      `the kernel's log cannot be read, so Xid and PCIe errors are not seen (${seen.kernelLog})`,
      seen.isRoot
        ? "sudo sysctl kernel.dmesg_restrict    # in a container: mount /dev/kmsg, add the capability SYSLOG"
        : "sudo sysctl -w kernel.dmesg_restrict=0    # or run the agent as root",
    );
  return ok("processes and the kernel's log can be read");
}

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
