/** Every question we ask of a job, in the order in which they are asked. */
import type { Job } from "../model/job.ts";
import type { Method } from "../model/method.ts";
import { firstError } from "./crash/first-error.ts";
import { ras } from "./hang/ras.ts";
import { stacks } from "./hang/stacks.ts";
import { waitGraph } from "./hang/wait-graph-method.ts";
import { watchdog } from "./hang/watchdog.ts";
import { slowDown } from "./iterations/slow-down-method.ts";
import { trackIterations } from "./iterations/track-job.ts";

export const METHODS: readonly Method[] = [waitGraph, stacks, ras, watchdog, firstError, slowDown];

/** What methods build on: the job with its iterations followed. */
export function withIterations(job: Job): Job {
  return { ...job, iterations: trackIterations(job) };
}
