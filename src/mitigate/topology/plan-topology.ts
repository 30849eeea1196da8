/**
 * S3: which slots change places so that a fault costs least (Greyhound §5.2). Greyhound moves congested links from
 * gradient exchanges onto pipelines and brings stragglers into the fewest stages; here both follow from one cost model
 * (`cost-model.ts`), which also finds places where a slow link carries nothing at all.
 */
import type { PlacedJob, TopologyPlan } from "../../model/mitigation.ts";
import type { Arrangement } from "./arrangement.ts";
import { checkJob } from "./check-job.ts";
import {
  healthyTables,
  identity,
  iterationMs,
  jobTables,
  type JobTables,
  type Rebalance,
} from "./cost-model.ts";
import { explainNothing, explainSwaps } from "./explain.ts";
import { descendExactly, search } from "./search.ts";
import { shorten, spread, swapList } from "./shorten.ts";

/** Below this share of an iteration a swap is not worth the pause that it costs. */
const LEAST_GAIN = 0.01;
/** Swaps that contribute less than this to the iteration are taken back. */
const TIE = 0.001;
/** Arrangements as good as the best whose lists of swaps are compared. */
const FINALISTS = 3;

export interface TopologyOptions {
  /**
   * Makespan when micro-batches are shared out anew for the places (S2 after S3); all times of the plan are then with
   * it. The search itself counts fractions of micro-batches; whole ones decide between the plans that it finds.
   */
  readonly rebalance?: Rebalance;
}

export function planTopology(job: PlacedJob, options: TopologyOptions = {}): TopologyPlan {
  checkJob(job);
  const { rebalance } = options;
  const tables = jobTables(job);
  const present = identity(job.slots.length);
  const beforeMs = iterationMs(tables, present, rebalance);
  const healthyMs = iterationMs(healthyTables(tables), present, rebalance);
  const bad = badSlots(tables);
  const nothing = (bestMs: number): TopologyPlan => ({
    swaps: [],
    placeOf: present,
    beforeMs,
    afterMs: beforeMs,
    healthyMs,
    why: explainNothing(tables, bad, beforeMs, bestMs),
  });
  if (bad.length === 0 || job.slots.length === 1) return nothing(beforeMs);

  const best = finalists(tables, bad, healthyMs, rebalance);
  const bestMs = best[0]!.judge(rebalance);
  if (beforeMs - bestMs < LEAST_GAIN * beforeMs) return nothing(bestMs);
  const ceilingMs = Math.min(bestMs * (1 + TIE), beforeMs * (1 - LEAST_GAIN));
  const plans = best.map((arrangement) => {
    shorten(arrangement, { bad, ceilingMs, rebalance });
    return {
      placeOf: arrangement.placeOf,
      swaps: swapList(arrangement.placeOf, bad),
      afterMs: arrangement.judge(rebalance),
      spread: spread(arrangement, bad),
    };
  });
  plans.sort(
    (a, b) => a.swaps.length - b.swaps.length || a.spread - b.spread || a.afterMs - b.afterMs,
  );
  const { placeOf, swaps, afterMs } = plans[0]!;
  const outcome = { swaps: swaps.length, placeOf, beforeMs, afterMs, healthyMs };
  return { swaps, placeOf, beforeMs, afterMs, healthyMs, why: explainSwaps(tables, bad, outcome) };
}

/** Slow, or at an end of a slow link. */
function badSlots({ compute, network, links }: JobTables): number[] {
  return [...identity(compute.length)].filter(
    (slot) => compute[slot]! > 1 || network[slot]! > 1 || links.from[slot + 1]! > links.from[slot]!,
  );
}

/** The best arrangement, and others that are as good. */
function finalists(
  job: JobTables,
  bad: readonly number[],
  healthyMs: number,
  rebalance: Rebalance | undefined,
): Arrangement[] {
  const found = search(job, rebalance !== undefined, bad, healthyMs);
  const judged = found.map((arrangement) => ({ arrangement, ms: arrangement.judge(rebalance) }));
  judged.sort((a, b) => a.ms - b.ms);
  if (rebalance) {
    for (const one of judged.slice(0, FINALISTS))
      one.ms = descendExactly(one.arrangement, bad, rebalance);
    judged.sort((a, b) => a.ms - b.ms);
  }
  return judged
    .filter(({ ms }) => ms <= judged[0]!.ms * (1 + TIE))
    .slice(0, FINALISTS)
    .map(({ arrangement }) => arrangement);
}
