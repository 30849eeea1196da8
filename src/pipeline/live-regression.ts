/** A regression of a running job, as a verdict with the team that owns it. */
import { thousands } from "../base/text.ts";
import type { Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { FoundRegression, TraceMetric } from "../model/regression.ts";
import type { WorkPart } from "../model/work-summary.ts";
import type { Verdict } from "../model/verdict.ts";
import { fuse } from "../verdict/fuse.ts";

const WORDS: Readonly<Record<WorkPart, string>> = {
  step: "iterations",
  dataloader: "loading data",
  "garbage-collection": "garbage collections",
  synchronization: "waiting for the GPU, more often than before,",
  products: "the same matrix products",
};
const METRICS: Readonly<Record<WorkPart, TraceMetric>> = {
  step: "throughput",
  dataloader: "vInter",
  "garbage-collection": "issueLatency",
  synchronization: "issueLatency",
  products: "flops",
};
/** Summaries name the part, no call and no line: a trace would. */
const WEIGHT = 0.8;

export function regressionVerdict(job: Job, found: FoundRegression): Verdict {
  const { cause, part, stepMs, healthyStepMs, partMs, healthyPartMs, machines, of } = found;
  const share = (stepMs - healthyStepMs) / stepMs;
  const why = `iterations take ${ms(stepMs)} instead of ${ms(healthyStepMs)}; ${WORDS[part]} take${part === "dataloader" || part === "synchronization" ? "s" : ""} up to ${ms(partMs)} of each instead of ${ms(healthyPartMs)}, on ${machines} of ${of} machines`;
  const ranks = [...job.ranks.keys()];
  const finding: Finding = {
    id: "f1",
    method: "traces/regression",
    says: why,
    weight: WEIGHT,
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
    accuses: [{ kind: "regression", type: "code", ranks, link: null, cause, weight: WEIGHT, why }],
    clears: [],
  };
  return fuse(job, [finding], []);
}

function ms(value: number): string {
  return `${value >= 100 ? thousands(Math.round(value)) : value.toFixed(1)} ms`;
}
