/**
 * The power that GPUs draw for what they do. Both are read at the same moment, so that their ratio does not depend on the
 * part of an iteration that a sample meets. A GPU that is silently slow computes for longer at less power, while those that
 * wait for it do little: the least power of a machine's GPUs falls against the most that any of them does.
 */
import { quantilePlace, select } from "../../maths/quickselect.ts";
import type { MetricGrid } from "../../model/fleet.ts";

/** Of the usual activity: below it the ratio says nothing. */
const LEAST_SHARE = 0.3;
const USUAL_QUANTILE = 0.9;

export function powerForActivity(grids: readonly MetricGrid[]): MetricGrid | null {
  const power = grids.find(({ metric }) => metric === "gpu-power-draw");
  const activity = grids.find(({ metric }) => metric === "gpu-sm-activity");
  if (!power || !activity) return null;
  const { startS, stepS, ticks } = power;
  if (activity.startS !== startS || activity.stepS !== stepS || activity.ticks !== ticks)
    return null;
  const seen = activity.high.filter((one) => one === one);
  if (seen.length === 0) return null;
  const usual = select(
    Float64Array.from(seen),
    0,
    seen.length,
    quantilePlace(seen.length, USUAL_QUANTILE),
  );
  const mean = power.low.map((watts, at) => {
    const does = activity.high[at]!;
    return does >= LEAST_SHARE * usual ? watts / does : NaN;
  });
  return {
    ...power,
    metric: "gpu-power-for-activity",
    source: `${power.source} by ${activity.source}`,
    mean,
    low: mean,
    high: mean,
    lowDevice: null,
    highDevice: null,
    reporting: null,
    devices: [],
  };
}
