/** Iteration times of a job from everything that tells them: logs, tables, and the operators of some ranks. */
import { median } from "../../maths/robust.ts";
import type { Job } from "../../model/job.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { operatorSeries } from "./operator-series.ts";
import { trackSeries } from "./track-series.ts";

/** Iterations that a log must print for others to be measured by them. */
const ENOUGH = 8;
/** Below this part of a log's iterations, what repeats in the operators is a part of one. */
const A_PART = 0.67;

export function trackIterations(job: Job): TrackedSeries[] {
  const fromLogs = job.series.map((series) => trackSeries(series));
  const found = operatorSeries(job).map(({ series, periods }) => trackSeries(series, periods));
  return [...fromLogs, ...found.filter((one) => !isPart(one, fromLogs))];
}

/**
 * The iterations that a log prints are those that people count. A shorter period of the operators is a micro-batch or a layer:
 * its numbers and times would only mislead beside the log's.
 */
function isPart(found: TrackedSeries, fromLogs: readonly TrackedSeries[]): boolean {
  const logged = fromLogs.filter(
    ({ iterations, medianMs }) => iterations >= ENOUGH && medianMs > 0,
  );
  return logged.length > 0 && found.medianMs < A_PART * median(logged.map((one) => one.medianMs));
}
