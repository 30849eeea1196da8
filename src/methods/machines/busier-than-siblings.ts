/**
 * How much longer the busiest GPU of a machine works than the machine's other GPUs. They are read at the same moment, in the
 * same part of an iteration, so that the difference does not depend on which part a sample meets. A GPU that takes longer
 * for the same work (silently slow, or shared with another process) works on while the others wait for it.
 */
import { quantilePlace, select } from "../../maths/quickselect.ts";
import type { MetricGrid } from "../../model/fleet.ts";

const USUAL_QUANTILE = 0.5;
const LEAST_GPUS = 4;
/** Tensor cores do the same work on a slow GPU, in more time. */
const WORK = ["gpu-sm-activity", "gpu-power-draw"];

/** Shares of the usual activity; null where SM activity of several GPUs a machine is not there. */
export function busierThanSiblings(grids: readonly MetricGrid[]): MetricGrid | null {
  const activity = WORK.flatMap((id) => grids.find(({ metric }) => metric === id) ?? [])[0];
  if (!activity || activity.high === activity.low) return null;
  const seen = Float64Array.from(activity.mean.filter((one) => one === one));
  if (seen.length === 0) return null;
  const usual = select(seen, 0, seen.length, quantilePlace(seen.length, USUAL_QUANTILE));
  if (!(usual > 0)) return null;
  const { mean, low, high, reporting } = activity;
  // Without the least busy one, whose exporter may read 0.
  const others = mean.map((one, at) => {
    const gpus = reporting?.[at] ?? 0;
    return gpus < LEAST_GPUS ? NaN : (gpus * one - low[at]! - high[at]!) / (gpus - 2);
  });
  const above = (side: Float32Array): Float32Array =>
    side.map((one, at) => (one - others[at]!) / usual);
  const most = above(high);
  return {
    ...activity,
    metric: "gpu-busier-than-siblings",
    mean: most,
    low: above(low),
    high: most,
  };
}
