/**
 * The whole of it: searches from a few pivots, their ends combined, an end believed only where it stands out from
 * the normal iterations, and a slow network narrowed down to a device.
 */
import { median, spread } from "../../../maths/robust.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import { Floors } from "./floors.ts";
import { narrow, type Device, type Wiring } from "./narrow.ts";
import { calmOperators, slowestGroup } from "./screen.ts";
import { Searcher, SEARCH_DEFAULTS, type Arrival, type SearchOptions } from "./search.ts";
import { growth } from "./series.ts";
import type { OperatorSource, Split } from "./source.ts";

export interface Culprit {
  readonly cause: "compute" | "network";
  readonly ranks: readonly Rank[];
  /** Of a slow network. */
  readonly device: Device | null;
  /** Pivots that came to it, of all. */
  readonly votes: number;
  readonly pivots: number;
  /** What it costs: how much longer others waited for it, or communicated, milliseconds an iteration. */
  readonly growthMs: number;
  readonly isSignificant: boolean;
}

export interface Progress {
  readonly culprit: Culprit | null;
  readonly arrivals: readonly Arrival[];
  /** Ranks whose logs were read nearly whole. */
  readonly fetched: number;
  readonly hops: number;
  readonly bytes: number;
}

/** Evidence: so many deviations of its normal iterations, and this share of a normal iteration. */
const SIGMAS = 4;
const MATTERS = 0.01;

export function searchProgressively(
  source: OperatorSource,
  groups: readonly Group[],
  split: Split,
  wiring: Wiring | null,
  options: Partial<SearchOptions> = {},
): Progress {
  const pivots = options.pivots ?? spreadPivots(source.worldSize, 3);
  const searcher = new Searcher(source, groups, split, { ...SEARCH_DEFAULTS, ...options, pivots });
  const arrivals = pivots.map((pivot) => searcher.from(pivot)).filter((each) => each !== null);
  const floors = new Floors(source, split);
  const calm = calmOperators(searcher.read, groups);
  const slow = slowestGroup(floors, groups, calm, wiring);
  const leastMs = MATTERS * median(split.normalMs);
  const device = (ranks: readonly Rank[]): Device => narrow(floors, groups, calm, ranks, wiring);
  let culprit: Culprit | null = null;
  const end = combined(arrivals, split);
  if (slow && slow.growthMs >= leastMs) {
    const found = device(slow.group.ranks);
    const { ranks } = found;
    const votes = arrivals.filter(({ cause }) => cause === "network").length;
    const facts = { votes, pivots: pivots.length, growthMs: slow.growthMs, isSignificant: true };
    culprit = { cause: "network", ranks, device: found, ...facts };
  } else if (end) {
    const { arrival, votes } = end;
    const found = arrival.cause === "network" ? device(arrival.ranks) : null;
    culprit = {
      cause: arrival.cause,
      ranks: found?.ranks ?? arrival.ranks,
      device: found,
      votes,
      pivots: pivots.length,
      growthMs: arrival.evidence ? growth(arrival.evidence, split) : 0,
      isSignificant: isSignificant(arrival, split),
    };
  }
  return {
    culprit,
    arrivals,
    fetched: searcher.read.length,
    hops: arrivals.reduce((sum, { path }) => sum + path.length - 1, 0),
    bytes: source.bytes,
  };
}

/** Spread over the job, and neither all first nor all last in groups of a power of two. */
export function spreadPivots(worldSize: number, count: number): Rank[] {
  const pivots = Array.from({ length: count }, (_, i) =>
    Math.floor(((i + ((i * 0.618_033_988_75 + 0.5) % 1)) * worldSize) / count),
  );
  return [...new Set(pivots)];
}

/** Most votes of searches that found something; the earliest among equals (Holmes takes the first it finds). */
function combined(
  arrivals: readonly Arrival[],
  split: Split,
): { arrival: Arrival; votes: number } | null {
  const ends = new Map<string, { arrival: Arrival; votes: number; significant: number }>();
  for (const arrival of arrivals) {
    const key = `${arrival.cause} ${arrival.group} ${arrival.group < 0 ? arrival.ranks.join() : ""}`;
    const stands = isSignificant(arrival, split);
    const known = ends.get(key);
    if (!known) ends.set(key, { arrival, votes: 1, significant: Number(stands) });
    else {
      known.votes++;
      // A pivot that waits for nobody has no evidence; whoever came to it from elsewhere has.
      if (stands && known.significant++ === 0) known.arrival = arrival;
    }
  }
  const rank = ({ significant, votes }: { significant: number; votes: number }): number =>
    significant > 0 ? 1000 + votes : votes;
  return [...ends.values()].sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

/** Iterations that are long by chance have a longest wait, too; it is then no longer than in others. */
function isSignificant({ evidence }: Arrival, split: Split): boolean {
  if (!evidence) return false;
  const normal = evidence.subarray(0, split.normal.length);
  const slow = evidence.subarray(split.normal.length);
  const grew = median(slow) - median(normal);
  if (grew < MATTERS * median(split.normalMs)) return false;
  const separate = Math.min(...slow) > Math.max(...normal);
  return separate && grew >= SIGMAS * spread(normal);
}
