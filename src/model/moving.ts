/**
 * Whether a job was running when its rings or dumps were taken. Those of a running job hold operators under way, and
 * those of different ranks are of different moments, so that it looks like a hang; but in a hang nothing ends any more.
 */
import { getOrInsert } from "../base/group-by.ts";
import { largest, smallest } from "../base/numbers.ts";
import { CLOCK_TOLERANCE_MS } from "./connections.ts";
import type { Job } from "./job.ts";
import { staleness } from "./staleness.ts";

/** Something ends more often than that in any job, whatever its iterations take. */
const LEAST_IDLE_MS = 1_000;
/** A job with one operator an iteration shows nothing for nearly as long as that; twice, for iterations that differ. */
const IDLE_ITERATIONS = 2;

/** goes-on: something began or ended just before. fresh: nothing had been pending for long, which is no hang yet. */
export type Movement = "goes-on" | "fresh" | "none";

const known = new WeakMap<Job, Movement>();

/** False where nothing tells when they were taken. */
export function isMoving(job: Job): boolean {
  return movementOf(job) !== "none";
}

export function movementOf(job: Job): Movement {
  const movement = getOrInsert(known, job, () =>
    goesOn(job) ? "goes-on" : isFresh(job) ? "fresh" : "none",
  );
  return movement;
}

/** Where something failed, or a rank is unseen, it may stand however short a time. */
function isFresh(job: Job): boolean {
  const isWhole = job.dumps.size >= job.worldSize && job.failures.length === 0;
  return isWhole && staleness(job) === "fresh";
}

function goesOn(job: Job): boolean {
  const idleMs = idleSince(job);
  const medians = job.iterations.map(({ medianMs }) => medianMs).filter((ms) => ms > 0);
  const most = Math.max(LEAST_IDLE_MS, IDLE_ITERATIONS * Math.min(...medians, Infinity));
  return idleMs < (medians.length > 0 ? most : LEAST_IDLE_MS);
}

/** Milliseconds from the last operator that began or ended to when that was copied; Infinity where nothing tells. */
function idleSince({ dumps }: Job): number {
  const told: { takenMs: number; activeMs: number }[] = [];
  let activeMs = -Infinity;
  for (const { dump } of dumps.values()) {
    const { ops, epochNs, takenNs } = dump;
    const epochMs = Number(epochNs / 1_000_000n);
    let lastNs = -Infinity;
    for (let i = 0; i < ops.count; i++) {
      // A CPU that issues goes on as well as a GPU that completes: after a long pause there is nothing else yet.
      if (ops.createdNs[i]! > lastNs) lastNs = ops.createdNs[i]!;
      if (ops.completedNs[i]! > lastNs) lastNs = ops.completedNs[i]!;
    }
    const lastMs = epochMs + lastNs / 1e6;
    activeMs = Math.max(activeMs, lastMs);
    if (takenNs !== undefined) told.push({ takenMs: epochMs + takenNs / 1e6, activeMs: lastMs });
  }
  const newestMs = largest(
    told.map(({ takenMs }) => takenMs),
    -Infinity,
  );
  // A dump in which nothing was under way does not tell when it was taken; one or two such are no reason to doubt. Where most
  // are such, the others tell if nothing is known to have gone on after them: one may lie there from an earlier look.
  if (told.length * 2 >= dumps.size) return newestMs - activeMs;
  const newest = told.filter(({ takenMs }) => takenMs > newestMs - LEAST_IDLE_MS);
  if (newest.length === 0 || activeMs > newestMs + CLOCK_TOLERANCE_MS) return Infinity;
  return smallest(
    newest.map((one) => one.takenMs - one.activeMs),
    Infinity,
  );
}
