import type { NewFinding } from "./finding.ts";
import type { Env, Job } from "./job.ts";

/** One question asked of a job. Never throws for bad data. */
export interface Method {
  /** "hang/wait-graph" */
  readonly id: string;
  /** Whether the inputs allow it. */
  applies(job: Job): boolean;
  run(job: Job, env: Env): AsyncIterable<NewFinding> | Iterable<NewFinding>;
}
