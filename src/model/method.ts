import type { NewFinding } from "./finding.ts";
import type { Env, Job } from "./job.ts";

/** Every method there is, by the question that it answers; methods/methods.ts has their code and their order. */
export const METHOD_IDS = [
  "hang/wait-graph",
  "hang/connections",
  "hang/process",
  "hang/stacks",
  "hang/ras",
  "hang/watchdog",
  "host/open-calls",
  "crash/first-error",
  "iterations/slow-down",
  "host/python-time",
  "slow/judge",
  "validation/tests",
  "traces/regression",
  "machines/peers",
  "logs/library",
] as const;

/** What the live service finds by itself. */
const LIVE_IDS = ["iterations/live", "slow/live", "live/processes", "site/judged"] as const;

export type MethodId = (typeof METHOD_IDS)[number] | (typeof LIVE_IDS)[number];

/** One question asked of a job. Never throws for bad data. */
export interface Method {
  readonly id: (typeof METHOD_IDS)[number];
  /** Whether the inputs allow it. */
  applies(job: Job): boolean;
  run(job: Job, env: Env): AsyncIterable<NewFinding> | Iterable<NewFinding>;
}
