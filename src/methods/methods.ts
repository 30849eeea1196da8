/** Every question we ask of a job, in the order in which they are asked. */
import type { Job } from "../model/job.ts";
import type { MinderModels } from "./machines/minder/model-file.ts";
import type { Method } from "../model/method.ts";
import { firstError } from "./crash/first-error.ts";
import { connections } from "./hang/connections.ts";
import { processState } from "./hang/process-state.ts";
import { ras } from "./hang/ras.ts";
import { stacks } from "./hang/stacks.ts";
import { waitGraph } from "./hang/wait-graph-method.ts";
import { watchdog } from "./hang/watchdog.ts";
import { openCalls } from "./host/open-calls.ts";
import { pythonTime } from "./host/python-time.ts";
import { rankOperatorSource } from "./iterations/rank-operators.ts";
import { slowDown } from "./iterations/slow-down-method.ts";
import { trackIterations } from "./iterations/track-job.ts";
import { slowJudge } from "./slow/slow-method.ts";
import { logCause, withLogReport } from "./logs/log-method.ts";
import { faultyMachine } from "./machines/machine-method.ts";
import { regression } from "./traces/regression-method.ts";
import { validationTests } from "./validation/validation-method.ts";

export const METHODS: readonly Method[] = [
  waitGraph,
  connections,
  processState,
  stacks,
  ras,
  watchdog,
  openCalls,
  firstError,
  slowDown,
  pythonTime,
  slowJudge,
  validationTests,
  regression,
  faultyMachine,
  logCause,
];

export { IterationTracker, type PointShift } from "./iterations/iteration-tracker.ts";
export { analyseLogs, healthyEvents } from "./logs/analyse-logs.ts";
export { withLogReport };
export type { LogKnowledge } from "./logs/log-method.ts";
export { normalPool } from "./logs/normal-pool.ts";
export { alignFleet } from "./machines/align.ts";
export { extendFleet, mergeMetrics } from "./machines/merge-fleets.ts";
export { readModels, type MinderModels } from "./machines/minder/model-file.ts";
export { runMinder } from "./machines/minder/minder.ts";
export { trainModels } from "./machines/minder/train-models.ts";
export { findMachines } from "./machines/find-machines.ts";
export { machineFindings } from "./machines/machine-method.ts";
export { explainMachine } from "./machines/explain.ts";
export { jobFleet, jobHints, nameHints } from "./machines/job-fleet.ts";
export { joinNames, type JoinedNames } from "./machines/names/join-names.ts";
export { machinePictures } from "./machines/pictures.ts";
export { judge as judgeTraces } from "./traces/regression-method.ts";
export { kernelClocks } from "./traces/kernel-clocks.ts";
export { timelinePicture } from "./traces/pictures/timeline.ts";
export { profileRun, ranked as rankedTraces } from "./traces/profile-run.ts";

/** What methods build on: the job with its iterations followed. */
export function withIterations(job: Job): Job {
  return { ...job, iterations: trackIterations(job), rankOperators: rankOperatorSource(job) };
}

/** Minder's trained models; only who asks for them loads them. */
export async function shippedModels(): Promise<MinderModels> {
  return (await import("./machines/minder/models.ts")).shippedModels();
}
