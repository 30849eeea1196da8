/** Which step to look at: where the worst regression shows most, or the longest one. */
import type { Rank } from "../../../model/ids.ts";
import type { Regression } from "../../../model/regression.ts";
import { STALL_CAUSES, type RankProfile, type RunProfile } from "../../../model/trace-profile.ts";

interface WorstStep {
  readonly rank: Rank;
  /** Index into the rank's steps, over all of its traces. */
  readonly index: number;
}

export function worstStep(run: RunProfile, regressions: readonly Regression[]): WorstStep {
  const [first] = regressions.toSorted((a, b) => b.share - a.share);
  const accused = run.ranks.filter(({ rank }) => first === undefined || first.ranks.includes(rank));
  let worst: WorstStep = { rank: run.ranks[0]!.rank, index: 0 };
  let most = -Infinity;
  for (const profile of accused.length > 0 ? accused : run.ranks) {
    for (const index of profile.stepMs.keys()) {
      const ms = lostMs(profile, index, first);
      if (ms <= most) continue;
      most = ms;
      worst = { rank: profile.rank, index };
    }
  }
  return worst;
}

/** Milliseconds of the step that the regression's stalls take; of other regressions the whole step counts. */
function lostMs(profile: RankProfile, index: number, regression: Regression | undefined): number {
  const stepMs = profile.stepMs[index]!;
  const cause = STALL_CAUSES.find((one) => one === regression?.cause);
  if (cause === undefined) return stepMs;
  return stepMs * (profile.intraStalls[cause][index]! + profile.interStalls[cause][index]!);
}

/** Ranks, the worst first: by what regressions take of their step, then by how late their CPUs are. */
export function worstFirst(run: RunProfile, regressions: readonly Regression[]): Rank[] {
  const weighed = run.ranks.map((profile) => ({
    rank: profile.rank,
    share: regressions.reduce(
      (sum, { ranks, share }) => sum + (ranks.includes(profile.rank) ? share : 0),
      0,
    ),
    late: mean(profile.breakdown?.["launch-gap"] ?? []),
  }));
  return weighed
    .toSorted((a, b) => b.share - a.share || b.late - a.late || a.rank - b.rank)
    .map(({ rank }) => rank);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
