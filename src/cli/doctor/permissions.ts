/** What this user may see: processes of other users, and the kernel's log. */
import { type Line, linesOf } from "./line.ts";

export interface PermissionsSeen {
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
