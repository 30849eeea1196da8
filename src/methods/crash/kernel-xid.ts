/**
 * NVIDIA's driver reports a GPU that failed (Xid) to the log of the kernel, which knows machines and process ids but no
 * ranks. A rank that dies of a GPU error on that machine tells of the same trouble, and says which GPU it was.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LogFailure } from "../../model/log.ts";

/** "NVRM: Xid (PCI:0000:1b:00): 62, pid=27246, name=python, …"; older drivers print the id in quotes, or none. */
const PID = /\bpid='?(\d{1,9})/;

/** Records of Xids but 45, with which the driver cleans up after any process. */
const XID = /^nvidia\.(?:nvlink\.)?xid(?!\.45$)/;

/** Whether the kernel's log tells of an Xid of this rank's process, or of its machine where it names no process. */
export function kernelSawGpuOf(job: Job, rank: Rank | null): boolean {
  const info = rank === null ? undefined : job.ranks.get(rank);
  const machine = info?.machine ?? null;
  if (rank === null || machine === null) return false;
  return job.failures.some((failure) => {
    if (!XID.test(failure.signature) || failure.rank !== null || !isOf(failure, machine))
      return false;
    const pid = PID.exec(failure.text)?.[1];
    const named = pid === undefined ? undefined : ownerOf(job, machine, Number(pid));
    return named === undefined || named === rank;
  });
}

/** Files of a kernel's log bear the machine's name, or lie in its folder. */
function isOf({ file, text }: LogFailure, machine: string): boolean {
  const short = machine.split(".")[0]!;
  const parts = file.split(/[/\\]/).flatMap((part) => [part, ...part.split(/[._\s]/)]);
  // syslog and journalctl print it in front of each line.
  return parts.includes(machine) || parts.includes(short) || text.split(/\s/, 8).includes(short);
}

function ownerOf(job: Job, machine: string, pid: number): Rank | undefined {
  const known = job.processes.get(`${machine}:${pid}`);
  if (known !== undefined) return known;
  return [...job.ranks.values()].find((one) => one.machine === machine && one.pid === pid)?.rank;
}
