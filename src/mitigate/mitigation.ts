/** Remedies as a plan that people and programs read: what, when, what it brings, what it supposes. */
import type { Mitigation, MitigationStep, PlacedJob, Strategy } from "../model/mitigation.ts";
import { remediesOf, type RemedyOptions, type RemedyPlan } from "./remedies.ts";
import { dueAfter, skiRental } from "./ski-rental.ts";

const DO: Readonly<Record<Strategy, string>> = {
  S1: "wait",
  S2: "rebalance-microbatches",
  S3: "swap-nodes",
  S4: "restart-without",
};

export function mitigationOf(
  job: PlacedJob,
  options: RemedyOptions = {},
  assumes: readonly string[] = [],
): Mitigation {
  const { nowMs, healthyMs, plans } = remediesOf(job, options);
  const useful = plans.filter(({ strategy, exclude }) => strategy !== "S4" || exclude!.length > 0);
  const due = dueAfter(useful, nowMs);
  const rental = skiRental(useful, nowMs);
  const steps = useful
    .map((plan, i) => stepOf(job, plan, due[i]!))
    .filter((_, i) => rental.remedies.includes(useful[i]!))
    .sort((a, b) => a.overheadMs - b.overheadMs);
  return {
    nowMs: round(nowMs),
    healthyMs: round(healthyMs),
    bound: round(rental.bound),
    steps,
    assumes,
  };
}

function stepOf(job: PlacedJob, plan: RemedyPlan, due: number): MitigationStep {
  const { strategy, overheadMs, iterationMs, why, microBatches, topology, exclude } = plan;
  const name = (slot: number): string => job.slots[slot]!.name;
  return {
    strategy,
    do: DO[strategy],
    iterationMs: Number.isFinite(iterationMs) ? round(iterationMs) : null,
    overheadMs,
    afterIterations: Number.isFinite(due) ? due : null,
    why,
    ...(microBatches
      ? { microBatches: microBatches.allocation, gradientWeights: microBatches.weights.map(round) }
      : {}),
    ...(topology ? { swaps: topology.swaps.map(({ a, b }) => [name(a), name(b)] as const) } : {}),
    ...(exclude ? { exclude } : {}),
  };
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
