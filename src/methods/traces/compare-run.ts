/** A run against healthy ones → its regressions, each with cause, owner and threshold (FLARE §5.2.4). */
import { groupBy } from "../../base/group-by.ts";
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";
import type { Regression } from "../../model/regression.ts";
import { slowCollectives, slowUntraced, type SlowCollective } from "./bandwidth-regressions.ts";
import { collectRegressions } from "./collect-regressions.ts";
import { healthyFrom, type Healthy } from "./healthy.ts";
import {
  gpusApart,
  kernelGrowth,
  kernelKey,
  SLOWER,
  type KernelGrowth,
} from "./kernel-regressions.ts";
import * as words from "./kernel-words.ts";
import { badLayouts } from "./layout.ts";
import { minorityGrowth } from "./minority-regressions.ts";
import { likeness, type Likeness } from "./same-work.ts";
import {
  isOldSync,
  latencyDistanceMs,
  LEAST_SHARE,
  stallGrowth,
  withoutOldSyncs,
  type StallGrowth,
} from "./stall-regressions.ts";
import { isPython, stallWords } from "./stall-words.ts";
import { rankWords, percent } from "../../base/text.ts";
import { regression } from "./regression-words.ts";

type OnRank = { readonly profile: RankProfile; readonly slow: SlowCollective };

/** No bet above even: nobody saw the members that are waited for, if it is a wait. */
const UNTRACED_WEIGHT = 0.5;

interface Comparison {
  readonly regressions: readonly Regression[];
  /** ④ by rank: distance of its issue latencies from the nearest healthy run's, milliseconds. */
  readonly distanceMs: ReadonlyMap<Rank, number>;
  /** What could not be judged, and why; a sentence each. */
  readonly notes: readonly string[];
}

/** A run that does the same work in so much less of the time is not held up by anything that has no name. */
const FASTER = 0.95;

export function compareRun(run: RunProfile, given: readonly RunProfile[]): Comparison {
  // A store may hold runs of several models: those that this run is like are its baseline.
  const alike = given.filter((other) => likeness(run, [other]).isComparable);
  const baseline = alike.length > 0 ? alike : given;
  const healthy = healthyFrom(baseline);
  const like = likeness(run, baseline);
  const layouts = layoutRegressions(run, baseline);
  if (!like.isComparable) {
    const share = `${(100 * like.inCommon).toFixed(0)} %`;
    const note = `only ${share} of the matrix operators and collectives are those of the baseline: another model or backend, so latencies, voids and kernels are not compared`;
    return { regressions: layouts, distanceMs: new Map(), notes: [note] };
  }
  const notes: string[] = [];
  const distanceMs = new Map(
    run.ranks.flatMap((profile): [Rank, number][] => {
      const ms = latencyDistanceMs(profile, healthy);
      return ms === null ? [] : [[profile.rank, ms]];
    }),
  );
  const stepMs = (profiles: readonly RankProfile[]): number =>
    median(profiles.map((profile) => median(profile.stepMs)));
  // Stages differ: of the ranks that both have, where there are any.
  const all = baseline.flatMap(({ ranks }) => ranks);
  const traced = new Set(run.ranks.map(({ rank }) => rank));
  const same = all.filter(({ rank }) => traced.has(rank));
  const known = new Set(same.map(({ rank }) => rank));
  const own = stepMs(same.length > 0 ? run.ranks.filter(({ rank }) => known.has(rank)) : run.ranks);
  const usual = stepMs(same.length > 0 ? same : all);
  const isFaster = like.isSame && own < FASTER * usual;
  const grown = stallGrowth(run.ranks, healthy, like).filter(
    ({ cause }) => cause !== "host" || !isFaster,
  );
  const stalls = withCollections(
    stallRegressions(grown, healthy),
    like.isSame ? collectRegressions(run, healthy) : [],
  );
  const kernels = kernelRegressions(run, healthy, like, layouts);
  // One step tells nothing of how much a network varies.
  const network = healthy.hasSteps ? networkRegressions(run, healthy) : [];
  const proven = [...stalls, ...layouts, ...kernels, ...network];
  const isSlower = like.isSame && healthy.hasSteps && own > (1 + LEAST_SHARE) * usual;
  const found = proven.length === 0 && isSlower ? untracedRegressions(run, healthy) : proven;
  if (isFaster && found.length === 0)
    notes.push(
      `a step does the same work in ${own.toFixed(1)} ms that takes ${usual.toFixed(1)} ms in the baseline`,
    );
  const regressions = found
    .map((one): Regression => ({ ...one, stepMs: [own, usual] }))
    .toSorted((a, b) => b.share - a.share);
  return { regressions, distanceMs, notes };
}

/** Collections are named once, by what they cost: the traced GPUs' idle time, or the longer step where that is more. */
function withCollections(
  stalls: readonly Regression[],
  collections: readonly Regression[],
): Regression[] {
  const isLess = (one: Regression): boolean =>
    collections.some(({ cause, share }) => cause === one.cause && share > one.share);
  const kept = stalls.filter((one) => !isLess(one));
  const isKept = kept.some(({ cause }) => cause === "garbage-collection");
  return isKept ? kept : [...kept, ...collections];
}

/**
 * Time without a name must have grown by so much more: any slower CPU, or a busier one, adds some. What follows a
 * synchronisation that was always there is such time: embeddings on the CPU (FLARE §7.3, its second false alarm).
 */
const UNNAMED = 2;

function stallRegressions(growths: readonly StallGrowth[], healthy: Healthy): Regression[] {
  const accused = growths.filter(
    (one) =>
      (one.cause !== "host" && !isOldSync(one, healthy)) ||
      (one.isMoved && one.growth > UNNAMED * one.limit),
  );
  const charged = withoutOldSyncs(accused, healthy, isPython);
  return [...groupBy(charged, ({ cause }) => cause).values()]
    .filter((list) => list.some(({ growth, limit }) => growth > limit))
    .map((list) => stallWords(list, healthy));
}

export function layoutRegressions(run: RunProfile, baseline: readonly RunProfile[]): Regression[] {
  const references = [...run.ranks, ...baseline.flatMap(({ ranks }) => ranks)];
  const found = run.ranks.flatMap((profile) =>
    badLayouts(profile, references, LEAST_SHARE).map((layout) => ({ profile, layout })),
  );
  const byShape = groupBy(found, ({ layout: { misaligned } }) => misaligned.size);
  return [...byShape.values()].map(words.layoutWords);
}

function kernelRegressions(
  run: RunProfile,
  healthy: Healthy,
  like: Likeness,
  layouts: readonly Regression[],
): Regression[] {
  // Other hardware has other speeds; durations then tell nothing.
  const isSameHardware = healthy.runs.some(
    ({ hardware }) => hardware === run.hardware || hardware === "" || run.hardware === "",
  );
  const growths = isSameHardware ? run.ranks.map((profile) => kernelGrowth(profile, healthy)) : [];
  const apart = Math.max(1, ...healthy.runs.map(gpusApart));
  const limit = 1 + healthy.caution * (Math.max(SLOWER, apart) - 1);
  const allSlow = growths.filter(
    ({ cost, isAll, ratio }) => isAll && ratio > limit && cost >= LEAST_SHARE,
  );
  // Matrix products slower everywhere and all else as fast as before: a library, not every GPU of the job at once.
  const isLibrary =
    allSlow.length === growths.length && allSlow.every(({ isMatrixOnly }) => isMatrixOnly);
  const slow = isLibrary ? [] : allSlow;
  const isOf = (profile: RankProfile): boolean => slow.some((one) => one.profile === profile);
  const regressions: Regression[] =
    slow.length > 0 ? [words.slowGpuWords(slow, run, healthy, limit)] : [];

  const some = onMostRanks(growths.filter(({ profile }) => !isOf(profile)));
  if (some.length > 0) regressions.push(words.slowKernelWords(some));

  const minority = run.ranks
    .filter((profile) => !isOf(profile))
    .flatMap((profile) => {
      const slower = some.find((one) => one.profile === profile)?.slower ?? [];
      return minorityGrowth(profile, healthy, like.isSame, slower);
    });
  if (minority.length > 0) regressions.push(words.minorityWords(minority, healthy));
  // Unaligned products are slow kernels whose reason is known.
  const isExplained = ({ cause, ranks }: Regression): boolean =>
    (cause === "slow-kernel" || cause === "gpu-slow") &&
    layouts.some((layout) => ranks.every((rank) => layout.ranks.includes(rank)));
  return regressions.filter((one) => !isExplained(one));
}

/** A tenth slower is beyond what a kernel's duration varies by from run to run when nothing else has changed. */
const KERNEL_SLOWER = 1.1;
/** Of the ranks that run it: all have the same code, so a kernel that is slow on a few of them has unequal input. */
const MOST_RANKS = 0.75;

function onMostRanks(growths: readonly KernelGrowth[]): KernelGrowth[] {
  const runs = new Map<string, number>();
  for (const { profile } of growths)
    for (const key of new Set(profile.kernels.map(kernelKey)))
      runs.set(key, (runs.get(key) ?? 0) + 1);
  const slow = groupBy(
    growths.flatMap(({ slower }) => slower.filter(({ ratio }) => ratio >= KERNEL_SLOWER)),
    ({ row }) => kernelKey(row),
  );
  return growths
    .map((growth): KernelGrowth => {
      const slower = growth.slower.filter(
        ({ row, ratio }) =>
          ratio >= KERNEL_SLOWER &&
          (slow.get(kernelKey(row))?.length ?? 0) >= MOST_RANKS * runs.get(kernelKey(row))!,
      );
      return { ...growth, slower, cost: slower.reduce((sum, { cost }) => sum + cost, 0) };
    })
    .filter(({ cost }) => cost >= LEAST_SHARE);
}

function networkRegressions(run: RunProfile, healthy: Healthy): Regression[] {
  const found = run.ranks.flatMap((profile) =>
    slowCollectives(profile, median(profile.stepMs), healthy, LEAST_SHARE).map((slow) => ({
      profile,
      slow,
    })),
  );
  // A group's row is in every member's profile.
  const byGroup = groupBy(found, ({ slow: { row } }) => row.groupRanks.join());
  return [...byGroup.values()].map((list) => networkWords(list, healthy));
}

/** Only where nothing else explains the longer step: a rank that is blocked makes others wait in their collectives. */
function untracedRegressions(run: RunProfile, healthy: Healthy): Regression[] {
  const found = slowUntraced(run.ranks, healthy, LEAST_SHARE, ({ stepMs }) => median(stepMs));
  return found.length === 0 ? [] : [untracedWords(found)];
}

/** Slow collectives in words. */
function networkWords(list: readonly OnRank[], healthy: Healthy): Regression {
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
  const threshold = `in every step slower than the slowest healthy step of the kind, by ${percent(limit - 1, 1)} (what steps of ${runs} vary by, 4 % at least), and 1 % of the step or more`;
  return regression("network-slow", profilesOf(list), "bandwidth", figures, why, threshold);
}

function untracedWords(list: readonly OnRank[]): Regression {
  const { row, healthyGBps, cost, ratio, limit } = costliest(list);
  const why =
    `even the shortest ${row.collective} of ${row.group} in a step takes ${ratio.toFixed(1)} times as long as in the baseline, and so do other collectives; ` +
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
