/**
 * Garbage collection that lengthens the step although no traced GPU starves for it: ranks pause at different moments, so
 * each spends its own pause waiting for another's (FLARE §6.4). Proof is both: CPU time inside collections beyond
 * the worst healthy step, and a step that is longer by more than healthy ones differ by.
 */
import { percent } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { Regression } from "../../model/regression.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";
import type { CollectTimes } from "./collect-time.ts";
import type { Healthy } from "./healthy.ts";
import { regression } from "./regression-words.ts";
import { LEAST_SHARE } from "./stall-regressions.ts";

type Collecting = RankProfile & Required<CollectTimes>;

export function collectRegressions(run: RunProfile, healthy: Healthy): Regression[] {
  const own = collecting(run);
  const others = healthy.runs.map(collecting).filter((ranks) => ranks.length > 0);
  // Collections come now and then: of a single step nothing can be learnt.
  if (own.length === 0 || others.length === 0 || !healthy.hasSteps) return [];
  const usual = median(others.flatMap(byStep));
  const limit = Math.max(LEAST_SHARE, ...others.flatMap(byStep).map((share) => share - usual));
  const share = median(byStep(own));
  const stepMs = median(own.map(stepOf));
  const healthyMs = others.map((ranks) => median(ranks.map(stepOf)));
  const slower = 1 - Math.max(...healthyMs) / stepMs;
  const growth = Math.min(share - usual, 1 - median(healthyMs) / stepMs);
  if (share - usual <= healthy.caution * limit || slower <= LEAST_SHARE) return [];
  const accused = own.filter((profile) => mean(profile.collectShares) - usual > limit);
  const why = `the CPU spends ${percent(share, 1)} of a step in Python's garbage collection, ${percent(usual, 1)} in the baseline, and ranks wait for each other's: a step takes ${stepMs.toFixed(1)} ms instead of ${median(healthyMs).toFixed(1)} ms`;
  const figures = { value: stepMs, baseline: median(healthyMs), share: growth };
  const excess = (share - usual) / (healthy.caution * limit);
  const threshold = `more than ${percent(healthy.caution * limit, 1)} of the step above the healthy level (the larger of 1 % and the worst healthy step), and a step 1 % longer than the slowest healthy run's`;
  return [
    regression(
      "garbage-collection",
      accused.length > 0 ? accused : own,
      "throughput",
      { ...figures, excess },
      why,
      threshold,
    ),
  ];
}

function collecting({ ranks }: RunProfile): Collecting[] {
  return ranks.filter((profile): profile is Collecting => "collectShares" in profile);
}

/** The mean of all ranks in each step: a rank that has no pause in a step waits for one that has. */
function byStep(ranks: readonly Collecting[]): number[] {
  const steps = Math.min(...ranks.map(({ collectShares }) => collectShares.length));
  return Array.from({ length: steps }, (_, step) =>
    mean(ranks.map(({ collectShares }) => collectShares[step]!)),
  );
}

function stepOf({ stepMs }: RankProfile): number {
  return median(stepMs);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
