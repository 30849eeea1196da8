/**
 * Is this a hang, or a running job that was dumped? A dump looks the same for both but for one thing: where it tells
 * when it was taken, the age of the operators that had not ended then is known. The age of the oldest is compared with
 * the operators' timeout.
 */
import type { Job } from "./job.ts";
import { COMPLETED } from "./operators.ts";

/** stale: pending for so long that it hangs; fresh: it may be running; unknown: nothing tells. */
type Staleness = "stale" | "fresh" | "unknown";

/** Whatever the timeout, nobody waits a minute in a healthy step. */
const SURELY_STALE_MS = 60_000;
const FRESH_MS = 2_000;

export function staleness(job: Job): Staleness {
  let oldestMs = -1;
  let timeoutMs = 0;
  for (const { dump } of job.dumps.values()) {
    const { ops, takenNs } = dump;
    timeoutMs = Math.max(timeoutMs, dump.timeoutMs);
    if (takenNs === undefined) continue;
    for (let i = ops.count - 1; i >= 0; i--) {
      if (ops.state[i] === COMPLETED) continue;
      const ageMs = (takenNs - ops.createdNs[i]!) / 1e6;
      if (ageMs > oldestMs) oldestMs = ageMs;
    }
  }
  if (oldestMs < 0) return "unknown";
  if (oldestMs >= SURELY_STALE_MS || (timeoutMs > 0 && oldestMs >= timeoutMs / 2)) return "stale";
  return oldestMs < FRESH_MS ? "fresh" : "unknown";
}
