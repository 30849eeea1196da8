/**
 * NVIDIA's driver reports a GPU that failed (Xid) to the log of the kernel. Where that line names no process that is
 * known, a rank that dies of a GPU error on that machine tells of the same trouble, and says which GPU it was.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { isLogOf } from "../../model/kernel-line.ts";

/** Records of Xids but 45, with which the driver cleans up after any process. */
const XID = /^nvidia\.(?:nvlink\.)?xid(?!\.45$)/;

/** Whether the kernel's log tells of an Xid of this rank, or of its machine where it does not tell whose. */
export function kernelSawGpuOf(job: Job, rank: Rank | null): boolean {
  const machine = rank === null ? null : (job.ranks.get(rank)?.machine ?? null);
  if (rank === null || machine === null) return false;
  return job.failures.some(
    (failure) =>
      XID.test(failure.signature) &&
      (failure.rank === rank || (failure.rank === null && isLogOf(failure, machine))),
  );
}
