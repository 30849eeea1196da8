/**
 * Faults that are given by what they cost (`cost=0.0266`: a step takes 2.66 % longer) instead of by how
 * strong they are. Papers report costs; how strong a fault must be for one depends on the layout, on how
 * far CPUs run ahead and on what overlaps, so it is found by trying, without noise.
 */
import { UserError } from "../../base/errors.ts";
import { simulate } from "./engine.ts";
import type { FaultSpec } from "./fault-spec.ts";
import type { ClusterSpec } from "./spec.ts";

const LEAST = 1 + 1e-6;
const MOST = 1e4;
const TRIAL_ITERATIONS = 4;
const HALVINGS = 30;
/** Of the cost. */
const TOLERANCE = 0.01;

/** The spec with a severity for every cost. */
export function severitiesFromCosts(spec: ClusterSpec): ClusterSpec {
  if (spec.faults.every(({ cost }) => cost === 0)) return spec;
  const faults = spec.faults.map((fault) =>
    fault.cost === 0 ? fault : { ...fault, severity: severityOf(spec, fault) },
  );
  return { ...spec, faults };
}

/** Mean time of an iteration, without noise. */
export function quietIterationNs(spec: ClusterSpec, faults: readonly FaultSpec[]): number {
  const iterations = TRIAL_ITERATIONS;
  let endNs = 0;
  for (const times of simulate({
    ...spec,
    faults,
    noise: 0,
    placement: 0,
    iterations,
  }).iterations())
    endNs = times.endNs;
  return endNs / iterations;
}

function severityOf(spec: ClusterSpec, fault: FaultSpec): number {
  const healthyNs = quietIterationNs(spec, []);
  const costAt = (severity: number): number => {
    const trial: FaultSpec = { ...fault, severity, shape: "steady", from: 1, to: Infinity };
    return quietIterationNs(spec, [trial]) / healthyNs - 1;
  };
  const least = costAt(LEAST);
  if (least > fault.cost * (1 + TOLERANCE)) {
    throw new UserError(
      `--fault ${fault.cause}: costs ${(100 * least).toFixed(2)} % of a step or more in this job`,
      `${(100 * fault.cost).toFixed(2)} % were asked for; choose another form (how=) or larger layers`,
      2,
    );
  }
  let [low, high] = [LEAST, MOST];
  for (let i = 0; i < HALVINGS; i++) {
    // Severities range over orders of magnitude above 1.
    const middle = 1 + Math.sqrt((low - 1) * (high - 1));
    const cost = costAt(middle);
    if (Math.abs(cost - fault.cost) < 0.5 * TOLERANCE * fault.cost) return middle;
    if (cost < fault.cost) low = middle;
    else high = middle;
  }
  if (Math.abs(costAt(high) - fault.cost) > TOLERANCE * fault.cost) {
    throw new UserError(
      `--fault ${fault.cause}: no severity costs ${(100 * fault.cost).toFixed(2)} % of a step in this job`,
      "ask for another cost, or more machines",
      2,
    );
  }
  return high;
}
