/** Whether a job had stopped when its dumps were written: most of them end in operators that nobody completed. */
import type { Job } from "./job.ts";
import { isMoving } from "./moving.ts";
import { COMPLETED } from "./operators.ts";

/** What ended so many iterations before a job stopped was over by then, and did not lead to the stop. */
export const LAST_ITERATIONS = 5;

export function hasStopped(job: Job): boolean {
  if (isMoving(job)) return false;
  const { dumps } = job;
  let pending = 0;
  for (const { dump } of dumps.values()) {
    const { state, count: entries } = dump.ops;
    if (entries > 0 && state[entries - 1] !== COMPLETED) pending++;
  }
  return pending > dumps.size / 2;
}
