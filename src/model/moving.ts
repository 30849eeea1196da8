/**
 * Whether a job was running when its rings or dumps were taken. Those of a running job hold operators under way, and
 * those of different ranks are of different moments, so that it looks like a hang; but in a hang nothing ends any more.
 */
import type { Job } from "./job.ts";

/** Something ends more often than that in any job, whatever its iterations take. */
const LEAST_IDLE_MS = 1_000;
/** A job with one operator an iteration shows nothing for nearly as long as that; twice, for iterations that differ. */
const IDLE_ITERATIONS = 2;

const known = new WeakMap<Job, boolean>();

/** False where nothing tells when they were taken. */
export function isMoving(job: Job): boolean {
  const before = known.get(job);
  if (before !== undefined) return before;
  const idleMs = idleSince(job);
  const medians = job.iterations.map(({ medianMs }) => medianMs).filter((ms) => ms > 0);
  const most = Math.max(LEAST_IDLE_MS, IDLE_ITERATIONS * Math.min(...medians, Infinity));
  const moves = idleMs < (medians.length > 0 ? most : LEAST_IDLE_MS);
  known.set(job, moves);
  return moves;
}

/** Milliseconds from the last operator that ended anywhere to the newest copy; Infinity where nothing tells. */
function idleSince({ dumps }: Job): number {
  let [endedMs, takenMs] = [-Infinity, -Infinity];
  let untold = 0;
  for (const { dump } of dumps.values()) {
    const { ops, epochNs, takenNs } = dump;
    const epochMs = Number(epochNs / 1_000_000n);
    if (takenNs === undefined) untold++;
    else takenMs = Math.max(takenMs, epochMs + takenNs / 1e6);
    for (let i = 0; i < ops.count; i++) {
      const at = epochMs + ops.completedNs[i]! / 1e6;
      if (at > endedMs) endedMs = at;
    }
  }
  // A flight-recorder dump in which nothing was under way does not tell; one or two such ranks are no reason to doubt.
  return untold * 2 > dumps.size ? Infinity : takenMs - endedMs;
}
