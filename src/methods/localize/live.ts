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
import { liveTimeBreakdowns } from "./live-time-breakdown.ts";
import { ownTimeSuspects, type OwnTimeSuspect } from "./own-time.ts";
import { searchProgressively, spreadPivots } from "./progressive/progressive.ts";
import { SEARCH_DEFAULTS } from "./progressive/search.ts";
import type { OperatorSource, Split } from "./progressive/source.ts";
import type { SlowIterations } from "./slow-iterations.ts";
import { locate, type Located } from "./slow-ranks.ts";
import { splitOf, waiting, weighed } from "./weigh.ts";
import { wiringOf } from "./progressive/wiring.ts";

export interface LiveInput {
  readonly job: Job;
  /** Of the iterations that are to be compared. */
  readonly points: LivePoints;
  /** The first slow iteration. */
  readonly slowFrom: number;
  readonly source: OperatorSource;
  /** All operators of one rank in these iterations; null where they are not there (yet). */
  operatorsOf(this: void, rank: Rank): RankOperators | null;
}

const PIVOTS = 5;
/** Ranks whose operators are fetched whole, to tell CPU from GPU. */
const MOST_WHOLE = 8;

/**
 * The answer that is possible so far, or nothing. The returned function is called again with more operators fetched, until the
 * search wants no more; what needs no operators is worked out once.
 */
export function liveLocalizer(input: LiveInput): () => NewFinding[] {
  const { job, source, slowFrom } = input;
  const slow: SlowIterations = {
    isSlow: (iteration) => iteration >= slowFrom,
    from: slowFrom,
    until: null,
    isLasting: true,
  };
  const split = liveSplit(input, slow);
  if (!split) return () => [];
  const accounts = liveTimeBreakdowns(input.points, slowFrom);
  const own = ownTimeSuspects(accounts).filter(({ kind }) => kind !== "always");
  const growthMs = median(split.slowMs) - median(split.normalMs);
  const wiring = wiringOf(job);
  return () => {
    if (source.ranks.length < 2) return [];
    const pivots = spreadPivots(source.ranks, PIVOTS);
    const progress = searchProgressively(source, job.groups, split, wiring, { pivots });
    const waitsFor = waiting(source, job, split, SEARCH_DEFAULTS.mostPlaces);
    const absent = [...job.ranks.keys()].filter((rank) => !source.has(rank));
    const suspects = absent.length > 0 ? own.filter(({ rank }) => !waitsFor(rank, absent)) : own;
    const ended = locate(progress, suspects, accounts, slow, growthMs, waitsFor);
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
    const totalMs = [...split.normalMs, ...split.slowMs];
    return weighed(located, slow, known, [], totalMs, witness);
  };
}

function liveSplit({ points }: LiveInput, slow: SlowIterations): Split | null {
  const { iterations, ranks, durationMs } = points;
  const totalMs = Array.from(iterations, (_, i) =>
    median(durationMs.subarray(i * ranks.length, (i + 1) * ranks.length).filter((ms) => ms > 0)),
  );
  return splitOf([...iterations], totalMs, slow);
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
function tellingOf({ points, slowFrom }: LiveInput): number {
  const { iterations, ranks, durationMs } = points;
  const first = iterations.findIndex((number) => number >= slowFrom);
  const rows = [...iterations.keys()].slice(first);
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
