/**
 * NVIDIA's driver reports a GPU that failed (Xid) to the log of the kernel. Where that line names no process that is
 * known, a rank that dies of a GPU error on that machine tells of the same trouble, and says which GPU it was.
 */
import type { Rank } from "./ids.ts";
import type { Job } from "./job.ts";
import { isLogOf } from "./kernel-line.ts";
import type { LogFailure } from "./log.ts";

/** Records of Xids but 45, with which the driver cleans up after any process. */
const XID = /^nvidia\.(?:nvlink\.)?xid(?!\.45$)/;

/** Whether the kernel's log tells of an Xid of this rank, or of its machine where it does not tell whose. */
export function kernelSawGpuOf(job: Job, rank: Rank | null): boolean {
  return rank !== null && xidsOf(job, rank).length > 0;
}

/** "Xid 79 in the kernel's log"; null where there is none, or its number is not known. */
export function kernelXidOf(job: Job, rank: Rank): string | null {
  const xids = xidsOf(job, rank);
  // Whose GPU it was is not known of the others.
  const own = xids.find((one) => one.rank === rank) ?? xids[0];
  const number = /\.(\d+)$/.exec(own?.signature ?? "")?.[1];
  if (number === undefined) return null;
  return `Xid ${number} in the kernel's log${own!.rank === rank ? "" : " of its machine"}`;
}

function xidsOf(job: Job, rank: Rank): readonly LogFailure[] {
  const machine = job.ranks.get(rank)?.machine ?? null;
  if (machine === null) return [];
  return job.failures.filter(
    (failure) =>
      XID.test(failure.signature) &&
      (failure.rank === rank || (failure.rank === null && isLogOf(failure, machine))),
  );
}
