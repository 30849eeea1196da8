/**
 * The whole of it: searches from a few pivots, their ends combined, an end believed only where it stands out from
 * the normal iterations, and a slow network narrowed down to a device.
 */
import { median } from "../../../maths/robust.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import { MinimumDurations } from "./minimum-durations.ts";
import { deviceOf, narrow, type Device } from "./narrow.ts";
import type { Wiring } from "./wiring.ts";
import { allFloors, observed } from "./observe-all.ts";
import { calmOperators, slowestGroup } from "./screen.ts";
import { READ_ALL, Searcher, SEARCH_DEFAULTS, type Arrival, type SearchOptions } from "./search.ts";
import { growth, iterationsOf, ratio, standsOut } from "./series.ts";
import type { OperatorSource, Split } from "./source.ts";

export interface Culprit {
  readonly cause: Arrival["cause"];
  readonly ranks: readonly Rank[];
  /** Of a slow network. */
  readonly device: Device | null;
  /** Pivots that came to it, of all. */
  readonly votes: number;
  readonly pivots: number;
  /** What it costs: how much longer others waited for it, or communicated, milliseconds an iteration. */
  readonly growthMs: number;
  /** How many times as long that takes as it did. */
  readonly ratio: number;
  readonly isSignificant: boolean;
}

export interface Progress {
  /** Who is believed: a slow network where its floors show one, else the first end. */
  readonly culprit: Culprit | null;
  /** Where the searches came to, the best supported first. */
  readonly ends: readonly Culprit[];
  /** Communication that got slow, whichever rank waits; null where none did. */
  readonly network: Culprit | null;
  readonly arrivals: readonly Arrival[];
  /** Ranks whose logs were read nearly whole. */
  readonly fetched: number;
  readonly hops: number;
  readonly bytes: number;
}

/** Evidence: so many deviations of its normal iterations, and this share of a normal iteration. */
const SIGMAS = 4;
const MATTERS = 0.01;

interface ProgressiveOptions extends Partial<SearchOptions> {
  /** Look at the communication of every group and link: for jobs small enough to read whole. */
  readonly isWhole?: boolean;
}

export function searchProgressively(
  source: OperatorSource,
  groups: readonly Group[],
  split: Split,
  wiring: Wiring,
  options: ProgressiveOptions = {},
): Progress {
  const pivots = options.pivots ?? spreadPivots(source.ranks, 3);
  const reading = options.isWhole ? READ_ALL : SEARCH_DEFAULTS;
  const searcher = new Searcher(source, groups, split, { ...reading, ...options, pivots });
  const arrivals = pivots.map((pivot) => searcher.from(pivot)).filter((each) => each !== null);
  const looked = options.isWhole
    ? lookAtAll(source, groups, split, wiring)
    : lookAtSome(source, groups, split, wiring, searcher);
  const votes = arrivals.filter(({ cause }) => cause === "network").length;
  const network: Culprit | null =
    looked.device && looked.growthMs >= MATTERS * median(split.normalMs)
      ? {
          cause: "network",
          ranks: looked.device.ranks,
          device: looked.device,
          votes,
          pivots: pivots.length,
          growthMs: looked.growthMs,
          ratio: looked.ratio,
          isSignificant: true,
        }
      : null;
  const ends = combined(arrivals, split).map(({ arrival, votes: came, stands }): Culprit => {
    const device = arrival.cause === "network" ? looked.narrowed(arrival.ranks) : null;
    return {
      cause: arrival.cause,
      ranks: device?.ranks ?? arrival.ranks,
      device,
      votes: came,
      pivots: pivots.length,
      growthMs: arrival.evidence ? growth(arrival.evidence, split) : 0,
      ratio: arrival.evidence ? ratio(arrival.evidence, split) : NaN,
      isSignificant: stands,
    };
  });
  return {
    culprit: network ?? ends[0] ?? null,
    ends,
    network,
    arrivals,
    fetched: searcher.read.length,
    hops: arrivals.reduce((sum, { path }) => sum + path.length - 1, 0),
    bytes: source.bytes,
  };
}

/** What was seen of communication itself. */
interface Looked {
  readonly device: Device | null;
  readonly growthMs: number;
  readonly ratio: number;
  narrowed(ranks: readonly Rank[]): Device;
}

function lookAtSome(
  source: OperatorSource,
  groups: readonly Group[],
  split: Split,
  wiring: Wiring,
  searcher: Searcher,
): Looked {
  const floors = new MinimumDurations(source, split);
  const calm = calmOperators(searcher.read, groups);
  const slow = slowestGroup(floors, groups, calm, wiring);
  const narrowed = (ranks: readonly Rank[]): Device => narrow(floors, groups, calm, ranks, wiring);
  const matters = slow !== null && slow.growthMs >= MATTERS * median(split.normalMs);
  return {
    device: matters ? narrowed(slow.group.ranks) : null,
    growthMs: slow?.growthMs ?? 0,
    ratio: slow?.observation.ratio ?? NaN,
    narrowed,
  };
}

function lookAtAll(
  source: OperatorSource,
  groups: readonly Group[],
  split: Split,
  wiring: Wiring,
): Looked {
  const all = observed(allFloors(source, groups, iterationsOf(split)), split);
  const narrowed = (ranks: readonly Rank[]): Device => deviceOf(all, ranks, wiring);
  const slow = all.filter(({ isSlow }) => isSlow).sort((a, b) => b.growthMs - a.growthMs)[0];
  return {
    device: slow ? narrowed(slow.ranks) : null,
    growthMs: slow?.growthMs ?? 0,
    ratio: slow?.ratio ?? NaN,
    narrowed,
  };
}

/** Spread over the job, and neither all first nor all last in groups of a power of two. */
export function spreadPivots(ranks: readonly Rank[], count: number): Rank[] {
  if (ranks.length <= count) return [...ranks];
  const pivots = Array.from(
    { length: count },
    (_, i) => ranks[Math.floor(((i + ((i * 0.618_033_988_75 + 0.5) % 1)) * ranks.length) / count)]!,
  );
  return [...new Set(pivots)];
}

interface End {
  readonly arrival: Arrival;
  readonly votes: number;
  readonly stands: boolean;
}

/** Most votes of searches that found something; the earliest among equals (Holmes takes the first it finds). */
function combined(arrivals: readonly Arrival[], split: Split): End[] {
  const ends = new Map<string, End>();
  for (const arrival of arrivals) {
    const { cause, group, ranks } = arrival;
    const key =
      group < 0 || cause === "unseen" ? `${cause} ${ranks.join()}` : `${cause} of ${group}`;
    const stands = isSignificant(arrival, split);
    const known = ends.get(key);
    // A pivot that waits for no other rank has no evidence; walks that came to it from elsewhere have.
    if (!known) ends.set(key, { arrival, votes: 1, stands });
    else {
      const better = stands && !known.stands ? arrival : known.arrival;
      ends.set(key, { arrival: better, votes: known.votes + 1, stands: stands || known.stands });
    }
  }
  const order = ({ stands, votes }: End): number => (stands ? 1_000_000 + votes : votes);
  return [...ends.values()].sort((a, b) => order(b) - order(a));
}

function isSignificant({ evidence }: Arrival, split: Split): boolean {
  return (
    evidence !== null &&
    growth(evidence, split) >= MATTERS * median(split.normalMs) &&
    standsOut(evidence, split, SIGMAS)
  );
}
