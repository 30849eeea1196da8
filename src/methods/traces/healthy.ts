/**
 * What is normal, learnt from healthy runs (FLARE §5.2.2, §8.2): the level of a metric, and how far healthy runs lie
 * apart. One run alone is split into the halves of its steps; its halves lie closer together than two runs do, so
 * their distance counts HALVES_FACTOR times.
 */
import { median } from "../../maths/robust.ts";
import { wasserstein } from "../../maths/wasserstein.ts";
import type { Rank } from "../../model/ids.ts";
import type { RankProfile, RunProfile } from "../../model/trace-profile.ts";

/** The largest of many distances is rarely more than twice one of them, drawn at random. */
const HALVES_FACTOR = 2;
/** Of the step: what a distance of latencies must be at least where a single step leaves nothing to compare. */
const UNKNOWN_DISTANCE = 0.25;

interface Level {
  readonly centre: number;
  /** How far healthy runs (or halves, counted up) lie apart, the worst rank's. */
  readonly deviation: number;
}

export interface Healthy {
  readonly runs: readonly RunProfile[];
  /** "the largest distance between 3 healthy runs", "twice the distance between the halves of the one baseline run". */
  readonly learntFrom: string;
  /** Whether some rank has two steps or more, so that it is known how much steps vary. */
  readonly hasSteps: boolean;
  /** How many times what was learnt counts: HALVES_FACTOR for one run, 1 for several. */
  readonly caution: number;
  /** Profiles to hold a rank against: the same rank's; all ranks' where no healthy run has it. */
  of(rank: Rank): readonly RankProfile[];
  level(rank: Rank, valuesOf: (profile: RankProfile) => readonly number[]): Level;
  /** Of one rank, and of all ranks together; shares of the step. */
  readonly rankDistance: number;
  readonly pooledDistance: number;
}

export function healthyFrom(runs: readonly RunProfile[]): Healthy {
  const byRank = new Map<Rank, RankProfile[]>();
  for (const { ranks } of runs)
    for (const profile of ranks)
      byRank.set(profile.rank, [...(byRank.get(profile.rank) ?? []), profile]);
  const all = runs.flatMap(({ ranks }) => ranks);
  const isOne = runs.length < 2;
  const factor = isOne ? HALVES_FACTOR : 1;
  const of = (rank: Rank): readonly RankProfile[] => byRank.get(rank) ?? all;
  const hasHalves = all.some(({ latencyHalves: [, second] }) => second.length > 0);
  return {
    runs,
    learntFrom: isOne
      ? hasHalves
        ? "twice what the halves of the one baseline run differ by"
        : "a cautious guess, because the one baseline run has a single step"
      : `the most that ${runs.length} healthy runs differ by`,
    hasSteps: [...byRank.values()].some(
      (list) => list.reduce((sum, { stepMs }) => sum + stepMs.length, 0) > 1,
    ),
    caution: factor,
    of,
    level(rank, valuesOf) {
      const medians = of(rank).map((profile) => median(valuesOf(profile)));
      // A rank that no healthy run has is held against the worst of the others.
      const centre = byRank.has(rank) ? median(medians) : Math.max(...medians);
      const apart = [...byRank.values()].map((profiles) =>
        Math.max(
          ...profiles.map((profile) => factor * halvesApart(valuesOf(profile))),
          spreadOf(profiles.map((profile) => median(valuesOf(profile)))),
        ),
      );
      return { centre, deviation: Math.max(0, ...apart) };
    },
    // The same run given twice lies at no distance from itself: halves count with several runs, too.
    rankDistance: largest([
      ...all.map(({ latencyHalves: [a, b] }) => factor * wasserstein(a, b)),
      ...[...byRank.values()].flatMap((profiles) => pairs(profiles.map(relativeLatencies))),
    ]),
    pooledDistance: largest([
      ...runs.map((run) => factor * halfApart(run)),
      ...pairs(runs.map((run) => pooled(run.ranks))),
    ]),
  };
}

/** Ascending shares of the step. */
export function relativeLatencies({ latencyHalves: [a, b] }: RankProfile): Float64Array {
  return Float64Array.from([...a, ...b]).sort();
}

export function pooled(ranks: readonly RankProfile[]): Float64Array {
  return Float64Array.from(ranks.flatMap(({ latencyHalves: [a, b] }) => [...a, ...b])).sort();
}

function halfApart({ ranks }: RunProfile): number {
  const half = (which: 0 | 1): Float64Array =>
    Float64Array.from(ranks.flatMap(({ latencyHalves }) => latencyHalves[which])).sort();
  return wasserstein(half(0), half(1));
}

function halvesApart(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const middle = Math.ceil(values.length / 2);
  return Math.abs(median(values.slice(0, middle)) - median(values.slice(middle)));
}

function pairs(distributions: readonly Float64Array[]): number[] {
  return distributions.flatMap((one, i) =>
    distributions.slice(i + 1).map((other) => wasserstein(one, other)),
  );
}

function spreadOf(values: readonly number[]): number {
  return values.length < 2 ? 0 : Math.max(...values) - Math.min(...values);
}

function largest(distances: readonly number[]): number {
  const known = distances.filter((distance) => !Number.isNaN(distance));
  return known.length === 0 ? UNKNOWN_DISTANCE : Math.max(...known);
}
