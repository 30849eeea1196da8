/**
 * Who makes a running job slow. The tracker has seen that it became slow; all ranks tell how long they spend outside
 * communication; operators lie with the agents and are asked for one by one (Holmes §5.2). The witnesses are those of
 * slow-rank-method.ts, and what they say together is weighed in the same way.
 */
import { count, rankWords } from "../../base/text.ts";
import { median } from "../../maths/robust.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { LivePoints } from "../../model/live-points.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import { attributeDevices, rankingOf, type Attribution } from "./attribute.ts";
import { liveTimeBreakdowns } from "./live-time-breakdown.ts";
import { habituallySlow, ownTimeSuspects, type OwnTimeSuspect } from "./own-time.ts";
import { searchProgressively, spreadPivots } from "./progressive/progressive.ts";
import { SEARCH_DEFAULTS, type Searcher } from "./progressive/search.ts";
import type { OperatorSource, Split } from "./progressive/source.ts";
import type { SlowIterations } from "./slow-iterations.ts";
import { isOnMachines, locate, type Located } from "./slow-ranks.ts";
import { HABIT, ofOneCulprit } from "./of-one-culprit.ts";
import { splitOf, waiting, weighed } from "./weigh.ts";
import { wiringOf } from "./progressive/wiring.ts";

export interface LiveInput {
  readonly job: Job;
  /** Of the iterations that are to be compared. */
  readonly points: LivePoints;
  /** Which of them are slow. */
  readonly slow: SlowIterations;
  readonly source: OperatorSource;
  /** All operators of one rank in these iterations; null where they are not there (yet). */
  operatorsOf(this: void, rank: Rank): RankOperators | null;
  /** Whether something was asked for that is not there yet. */
  isWanting(this: void): boolean;
}

const PIVOTS = 5;
/** Ranks whose operators are fetched whole, to tell CPU from GPU. */
const MOST_WHOLE = 8;

/**
 * The answer that is possible so far, or nothing. The returned function is called again with more operators fetched, until the
 * search wants no more; what needs no operators is worked out once.
 */
export function liveLocalizer(input: LiveInput): () => NewFinding[] {
  const { job, source, slow: seen } = input;
  const split = liveSplit(input, seen);
  if (!split) return () => [];
  const accounts = liveTimeBreakdowns(input.points, seen);
  const own = seen.isLasting
    ? ownTimeSuspects(accounts).filter(({ kind }) => kind !== "always")
    : habituallySlow(accounts, seen.isSlow);
  const wiring = wiringOf(job);
  const searchers = new Map<number, Searcher>();
  const among = (
    slow: SlowIterations,
    pivots: readonly Rank[],
    attribution: Attribution,
  ): NewFinding[] => {
    const compared = comparedIn(split, slow);
    if (!compared) return [];
    const growthMs = median(compared.slowMs) - median(compared.normalMs);
    const progress = searchProgressively(source, job.groups, compared, wiring, { pivots });
    const waitsFor = waiting(source, job, compared, SEARCH_DEFAULTS.mostPlaces);
    const absent = [...job.ranks.keys()].filter((rank) => !source.has(rank));
    const suspects = absent.length > 0 ? own.filter(({ rank }) => !waitsFor(rank, absent)) : own;
    const ended = locate(progress, suspects, accounts, slow, growthMs, waitsFor, isOnMachines(job));
    const cut = wholeOnes(input, ended, suspects, pivots);
    if (cut.length === 0) return [];
    // Without operators of a rank (yet), it is unknown what is slow in it.
    const isThere = ({ rank }: { readonly rank: Rank }): boolean =>
      cut.some((one) => one.rank === rank);
    const located = { ...ended, ranks: ended.ranks.filter(isThere) };
    const witness = {
      job,
      cut,
      accounts,
      seen: source.ranks.length / Math.max(source.ranks.length, job.worldSize),
      lacks: lacksOf(absent, input.points.ranks.length - tellingOf(input)),
      clocks: new Map<Rank, number>(),
    };
    const known = suspects.filter(isThere);
    const totalMs = [...compared.normalMs, ...compared.slowMs];
    const [first, ...others] = weighed(located, slow, known, [], totalMs, witness);
    if (!first) return [];
    const slowIterations = input.points.iterations.filter(slow.isSlow);
    const picked = slow.isLasting ? {} : { slowIterations: [...slowIterations] };
    return [{ ...first, data: { ...first.data, ...rankingOf(attribution), ...picked } }, ...others];
  };
  return () => {
    if (source.ranks.length < 2) return [];
    const pivots = spreadPivots(source.ranks, PIVOTS);
    const attribution = attributeDevices(source, job, split, pivots, () => null, searchers);
    const leastHabit = habitOf(split.slow.length, job.worldSize);
    const picked = seen.isLasting ? [] : ofOneCulprit(own, accounts, attribution, job, leastHabit);
    for (const slow of seen.isLasting ? [seen, ...picked] : picked) {
      const findings = among(slow, pivots, attribution);
      // What is still to be fetched decides before anything else is tried.
      if (findings.length > 0 || input.isWanting()) return findings;
    }
    return [];
  };
}

/** The most that one of the job's ranks is expected to gather so many by chance. */
const BY_CHANCE = 3e-4;

/** How many of some slow iterations are one rank's habit: hiccups hit ranks at random. */
function habitOf(slow: number, ranks: number): number {
  for (let least = HABIT; least <= slow; least++) {
    let expected = 0;
    for (let k = least; k <= slow; k++) expected += choose(slow, k) * ranks ** (1 - k);
    if (expected <= BY_CHANCE) return least;
  }
  return Math.max(HABIT + 1, slow);
}

function choose(n: number, k: number): number {
  let ways = 1;
  for (let i = 1; i <= k; i++) ways *= (n - k + i) / i;
  return ways;
}

/** null where too few iterations are left to compare. */
function comparedIn(split: Split, { isSlow, isLasting }: SlowIterations): Split | null {
  if (isLasting) return split;
  const at = [...split.slow.keys()].filter((i) => isSlow(split.slow[i]!));
  if (at.length < HABIT) return null;
  const rest = split.slow.filter((number) => !isSlow(number));
  return {
    ...split,
    slow: at.map((i) => split.slow[i]!),
    slowMs: at.map((i) => split.slowMs[i]!),
    // Read along: the answers are there already.
    also: rest,
  };
}

/** Iterations of each kind whose operators are asked for. */
const MOST_NORMAL = 16;
const MOST_SLOW = 8;

function liveSplit({ points }: LiveInput, slow: SlowIterations): Split | null {
  const { iterations, ranks, durationMs } = points;
  const totalMs = Array.from(iterations, (_, i) =>
    median(durationMs.subarray(i * ranks.length, (i + 1) * ranks.length).filter((ms) => ms > 0)),
  );
  const split = splitOf([...iterations], totalMs, slow);
  if (!split || slow.isLasting) return split;
  return {
    normal: split.normal.slice(-MOST_NORMAL),
    normalMs: split.normalMs.slice(-MOST_NORMAL),
    slow: split.slow.slice(-MOST_SLOW),
    slowMs: split.slowMs.slice(-MOST_SLOW),
  };
}

/** Of any rank that may be named; for a network one of its ends, so that the finding has a place. */
function wholeOnes(
  { operatorsOf }: LiveInput,
  { ranks, network, unseen }: Located,
  own: readonly OwnTimeSuspect[],
  pivots: readonly Rank[],
): RankOperators[] {
  const named = [...ranks.map(({ rank }) => rank), ...own.map(({ rank }) => rank)];
  const wanted = [...new Set(named)].slice(0, MOST_WHOLE);
  if (network) wanted.push(network.ranks[0]!);
  if (wanted.length === 0 && unseen) wanted.push(pivots[0]!);
  return [...new Set(wanted)].flatMap((rank) => operatorsOf(rank) ?? []);
}

/** Ranks that reported one of the slow iterations. */
function tellingOf({ points, slow }: LiveInput): number {
  const { iterations, ranks, durationMs } = points;
  const rows = [...iterations.keys()].filter((i) => slow.isSlow(iterations[i]!));
  return ranks.filter((_, k) => rows.some((i) => durationMs[i * ranks.length + k]! > 0)).length;
}

function lacksOf(absent: readonly Rank[], silent: number): string[] {
  const lacks: string[] = [];
  if (absent.length > 0)
    lacks.push(
      `${rankWords(absent)} ${absent.length === 1 ? "has" : "have"} no agent that answers`,
    );
  if (silent > 0) lacks.push(`${count(silent, "rank")} did not report the slow iterations`);
  return lacks;
}
