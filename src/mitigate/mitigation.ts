/** Remedies as a plan that people and programs read: what, when, what it brings, what it supposes. */
import type {
  Mitigation,
  MitigationStep,
  PlacedJob,
  Placement,
  Strategy,
} from "../model/mitigation.ts";
import type { Action } from "../model/verdict.ts";
import { remediesOf, type RemedyOptions, type RemedyPlan } from "./remedies.ts";
import { boundOf, dueAfter, worthwhileRemedies } from "./ski-rental.ts";

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
  seats: RankSeats | null = null,
): Mitigation {
  const { nowMs, healthyMs, plans } = remediesOf(job, options);
  const useful = plans.filter(({ strategy, exclude }) => strategy !== "S4" || exclude!.length > 0);
  const due = dueAfter(useful, nowMs);
  const worthwhile = worthwhileRemedies(useful, nowMs);
  const steps = useful
    .map((plan, i) => stepOf(job, plan, due[i]!, seats))
    .filter((_, i) => worthwhile.includes(useful[i]!))
    .sort((a, b) => a.overheadMs - b.overheadMs);
  return {
    nowMs: round(nowMs),
    healthyMs: round(healthyMs),
    bound: round(boundOf(worthwhile)),
    steps,
    assumes,
  };
}

/** What can be done while the job runs, as actions of a verdict; a restart is among its own already. */
export function actionsOf(plan: Mitigation): Action[] {
  return plan.steps.flatMap((step) => {
    if (step.strategy === "S4" || step.iterationMs === null) return [];
    const brings = `${Math.round(plan.nowMs)} → ${Math.round(step.iterationMs)} ms per iteration`;
    const due =
      step.afterIterations === null ? "" : `, due after ${step.afterIterations} slow iterations`;
    const target = step.swaps
      ? step.swaps.map((pair) => pair.join(" and ")).join(", then ")
      : fewest(step.microBatches ?? []);
    return [{ do: step.do, target, why: `until it is fixed: ${brings}${due}; ${step.why}` }];
  });
}

/** Replicas that take the fewest. */
function fewest(microBatches: readonly number[]): string {
  const least = microBatches.reduce((a, b) => Math.min(a, b), Infinity);
  const replicas = microBatches.flatMap((count, i) => (count === least ? [i] : []));
  return `replica${replicas.length > 1 ? "s" : ""} ${replicas.slice(0, 8).join(", ")}`;
}

/** Who sits where before anything is moved. */
export interface RankSeats {
  /** Ranks of each place. */
  readonly ranks: readonly (readonly number[])[];
  /** null where it is not known. */
  machineOf(rank: number): string | null;
}

/** A slot takes its GPUs along: rank i of the place has the i-th of them. */
function placementOf(placeOf: Int32Array, seats: RankSeats): Placement | null {
  const { ranks } = seats;
  const gpuOf: number[] = [];
  for (const [slot, place] of placeOf.entries())
    for (const [i, rank] of ranks[place]!.entries()) gpuOf[rank] = ranks[slot]![i]!;
  const hosts = Array.from(gpuOf, (rank) => (rank === undefined ? null : seats.machineOf(rank)));
  const isKnown = hosts.every((host) => host !== null);
  return isKnown ? { gpuOf, hosts } : null;
}

function stepOf(
  job: PlacedJob,
  plan: RemedyPlan,
  due: number,
  seats: RankSeats | null,
): MitigationStep {
  const { strategy, overheadMs, iterationMs, why, microBatches, topology, exclude } = plan;
  const name = (slot: number): string => job.slots[slot]!.name;
  const placement = topology && seats ? placementOf(topology.placeOf, seats) : null;
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
    ...(placement ? { placement } : {}),
    ...(exclude ? { exclude } : {}),
  };
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
