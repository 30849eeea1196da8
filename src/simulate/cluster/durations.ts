/**
 * How long fail-slows last, where the user leaves it open (`to=drawn`): Greyhound §3.2 to §3.4 found means
 * of 10 minutes for computation, 24 for communication, and 72 in jobs of a thousand GPUs and more, with
 * tails from under a minute to over 100. The exponential form is our assumption; the means are theirs.
 */
import { simulate } from "./engine.ts";
import type { FaultSpec } from "./fault-spec.ts";
import { STREAM, uniform } from "./noise.ts";
import type { ClusterSpec } from "./spec.ts";

const COMPUTATION_MINUTES = 10;
const COMMUNICATION_MINUTES = 24;
const AT_SCALE_MINUTES = 72;
const AT_SCALE_GPUS = 1024;

function meanMinutes(spec: ClusterSpec, fault: FaultSpec): number {
  if (spec.gpus >= AT_SCALE_GPUS) return AT_SCALE_MINUTES;
  return fault.cause === "network-slow" ? COMMUNICATION_MINUTES : COMPUTATION_MINUTES;
}

/** The spec with every open end drawn, in iterations of the healthy job. */
export function drawDurations(spec: ClusterSpec): ClusterSpec {
  if (!spec.faults.some((fault) => fault.drawn)) return spec;
  const preview = simulate({ ...spec, faults: [], iterations: 1 })
    .iterations()
    .next();
  const iterationNs = preview.done ? 1e9 : preview.value.endNs;
  const faults = spec.faults.map((fault, index) => {
    if (!fault.drawn) return fault;
    const u = uniform(spec.seed ^ STREAM.duration, index, fault.from, 0);
    const minutes = -Math.log(1 - u) * meanMinutes(spec, fault);
    const iterations = Math.max(1, Math.round((minutes * 60e9) / iterationNs));
    return { ...fault, to: fault.from + iterations - 1 };
  });
  return { ...spec, faults };
}
