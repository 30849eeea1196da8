/** Iteration times of a job from everything that tells them: logs, tables, and the operators of some ranks. */
import type { Job } from "../../model/job.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { operatorSeries } from "./operator-series.ts";
import { trackSeries } from "./track-series.ts";

export function trackIterations(job: Job): TrackedSeries[] {
  const told = job.series.map((series) => trackSeries(series));
  const found = operatorSeries(job).map(({ series, periods }) => trackSeries(series, periods));
  return [...told, ...found];
}
