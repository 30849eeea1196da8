/** A regression of a running job, as a verdict with the team that owns it. */
import { thousands } from "../base/text.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { FoundRegression, GrownPart, TraceMetric } from "../model/regression.ts";
import type { Verdict } from "../model/verdict.ts";
import { fuse } from "../verdict/fuse.ts";

const METRICS: Readonly<Record<GrownPart, TraceMetric>> = {
  dataloader: "vInter",
  "garbage-collection": "issueLatency",
  synchronization: "issueLatency",
  products: "flops",
  own: "throughput",
  transfers: "bandwidth",
};
/** Summaries name the part, no call and no line: a trace would. */
const WEIGHT = 0.8;
/** It may be other work: longer sequences, larger batches. */
const WEIGHT_UNKNOWN_WORK = 0.5;

export function regressionVerdict(job: Job, found: FoundRegression): Verdict {
  const { cause, part, stepMs, healthyStepMs, partMs, healthyPartMs } = found;
  const share = (stepMs - healthyStepMs) / stepMs;
  const why = `iterations take ${ms(stepMs)} instead of ${ms(healthyStepMs)}; ${partWords(found)}, on ${found.machines} of ${found.of} machines`;
  const ranks = [...job.ranks.keys()];
  const weight = found.isSameWork === false ? WEIGHT_UNKNOWN_WORK : WEIGHT;
  const type = part === "transfers" ? "switch" : "code";
  const finding: Finding = {
    id: "f1",
    method: "traces/regression",
    says: why,
    weight,
    at: [],
    data: {
      fact: "regressed-metric",
      regression: true,
      metric: METRICS[part],
      value: partMs,
      baseline: healthyPartMs,
      share,
      threshold: "longer than all healthy windows, for three windows in a row",
    },
    accuses: [{ kind: "regression", type, ranks, link: null, cause, weight, why }],
    clears: [],
  };
  const verdict = fuse(job, [finding], []);
  if (found.isSameWork !== false) return verdict;
  const unknown =
    "matrix products were not traced, so longer sequences or larger batches look like slower kernels";
  return { ...verdict, missing: [unknown, ...verdict.missing] };
}

function partWords({ cause, part, partMs, healthyPartMs }: FoundRegression): string {
  const instead = `${ms(partMs)} instead of ${ms(healthyPartMs)}`;
  switch (part) {
    case "dataloader":
      return `loading data takes up to ${instead} of each`;
    case "garbage-collection":
      return `garbage collections take up to ${instead} of each`;
    case "synchronization":
      return `waiting for the GPU, more often than before, takes up to ${instead} of each`;
    case "products":
      return `matrix products of the same shapes take ${instead}`;
    case "transfers":
      return `collectives of the same sizes take ${instead} where they wait for nobody`;
    case "own":
      return `ranks spend ${instead} of each outside communication, ${cause === "cpu-stall" ? "and their CPUs are no longer ahead of their GPUs" : "with CPUs as far ahead of their GPUs as before: kernels take longer, or there are more of them"}`;
  }
}

function ms(value: number): string {
  return `${value >= 100 ? thousands(Math.round(value)) : value.toFixed(1)} ms`;
}
