/** Slow collectives in words. */
import { rankWords } from "../../base/text.ts";
import type { Regression } from "../../model/regression.ts";
import type { RankProfile } from "../../model/trace-profile.ts";
import type { SlowCollective } from "./bandwidth-regressions.ts";
import type { Healthy } from "./healthy.ts";
import { percent, regression } from "./regression-words.ts";

type OnRank = { readonly profile: RankProfile; readonly slow: SlowCollective };

export function networkWords(list: readonly OnRank[], healthy: Healthy): Regression {
  const { row, healthyGBps, cost, ratio, limit } = costliest(list);
  const why = `${row.collective} of ${row.group} (${rankWords(row.groupRanks)}, ${row.bytes} bytes) moves ${row.busGBps.toPrecision(3)} GB/s; the slowest healthy group of its kind ${healthyGBps.toPrecision(3)} GB/s`;
  const figures = {
    value: row.busGBps,
    baseline: healthyGBps,
    share: cost,
    excess: (ratio - 1) / (limit - 1),
  };
  const runs =
    healthy.runs.length === 1 ? "one baseline run" : `${healthy.runs.length} healthy runs`;
  const threshold = `in every step slower than the slowest healthy step of the kind, by ${percent(limit - 1)} (what steps of ${runs} vary by, 4 % at least), and 1 % of the step or more`;
  return regression("network-slow", profilesOf(list), "bandwidth", figures, why, threshold);
}

/** No bet above even: nobody saw the members that are waited for, if it is a wait. */
const UNTRACED_WEIGHT = 0.5;

export function untracedWords(list: readonly OnRank[]): Regression {
  const { row, healthyGBps, cost, ratio, limit } = costliest(list);
  const why =
    `even the shortest ${row.collective} of ${row.group} in a step takes ${ratio.toFixed(1)} times as long as in the baseline, and other collectives alike; ` +
    `not all members left traces, so this may be a rank without a trace that is always late`;
  const figures = { value: row.busGBps, baseline: healthyGBps, share: cost, excess: 1 };
  const threshold = `the shortest transfer of every step ${limit.toFixed(2)} times as long as the longest such in the baseline, by the same factor in several collectives, and nothing else that explains it`;
  const said = regression("network-slow", profilesOf(list), "bandwidth", figures, why, threshold);
  return { ...said, weight: Math.min(said.weight, UNTRACED_WEIGHT) };
}

function costliest(list: readonly OnRank[]): SlowCollective {
  return list.reduce((a, b) => (b.slow.cost > a.slow.cost ? b : a)).slow;
}

function profilesOf(list: readonly OnRank[]): RankProfile[] {
  return [...new Set(list.map(({ profile }) => profile))];
}
