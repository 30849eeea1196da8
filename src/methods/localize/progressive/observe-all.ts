/**
 * What all communication of a job costs by iteration, where all operators are at hand: every group, every pipeline
 * link. The least duration among an operator's members is that of the one that came last and waited for nobody.
 */
import { median, spread } from "../../../maths/robust.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import type { Observation } from "./minimum-durations.ts";
import type { Wiring } from "./wiring.ts";
import { growth, leastOfAll, partsApart, ratio, standsOut, sums } from "./series.ts";
import { COLLECTIVE, RECEIVING, type OperatorSource, type Split } from "./source.ts";

export interface FloorSeries {
  readonly ranks: readonly Rank[];
  /** The job's group; -1 for a link. */
  readonly group: number;
  readonly isLink: boolean;
  /** Operators of an iteration. */
  readonly count: number;
  /** Milliseconds in all of them, by iteration asked for; NaN where it is not known. */
  readonly floorMs: Float64Array;
}

/** Transfers of a link in an iteration that are looked at. */
const MOST_TRANSFERS = 32;

export function allFloors(
  source: OperatorSource,
  groups: readonly Group[],
  iterations: readonly number[],
): FloorSeries[] {
  const { calls, links } = communicationOf(source, iterations.at(-1)!);
  const all: FloorSeries[] = [];
  for (const [id, count] of calls) {
    const ranks = groups[id]?.ranks ?? [];
    // The last to come may be the one that is not seen.
    if (ranks.length < 2 || !ranks.every((rank) => source.has(rank))) continue;
    const nth = Array.from({ length: count }, (_, n) => n);
    const floors = leastOfAll(source.collectivesOf(ranks, id, nth, iterations));
    all.push({ ranks, group: id, isLink: false, count, floorMs: sums(floors, count) });
  }
  for (const { pair, transfers } of links) {
    const nth = Array.from({ length: Math.min(transfers, MOST_TRANSFERS) }, (_, n) => n);
    const sides = pair.map((side) => source.transfersOf(side, pair[0], pair[1], nth, iterations));
    const floors = leastOfAll(sides);
    // Queueing makes some transfers longer, a slow link all of them: one of the shorter ones counts.
    const floorMs = Float64Array.from(iterations, (_, i) => {
      const one = floors.subarray(i * nth.length, (i + 1) * nth.length).toSorted();
      return transfers * one[Math.floor(one.length / 4)]!;
    });
    all.push({ ranks: pair, group: -1, isLink: true, count: transfers, floorMs });
  }
  return all;
}

interface Communication {
  /** Group → its operators of an iteration. */
  readonly calls: ReadonlyMap<number, number>;
  readonly links: readonly { pair: readonly [Rank, Rank]; transfers: number }[];
}

function communicationOf(source: OperatorSource, iteration: number): Communication {
  const calls = new Map<number, number>();
  const links: { pair: readonly [Rank, Rank]; transfers: number }[] = [];
  for (const rank of source.ranks) {
    const { kind, group, peer } = source.iterationOf(rank, iteration);
    const own = new Map<number, number>();
    const received = new Map<Rank, number>();
    const add = <K>(map: Map<K, number>, key: K): void =>
      void map.set(key, (map.get(key) ?? 0) + 1);
    for (let place = 0; place < kind.length; place++) {
      if (kind[place] === COLLECTIVE) add(own, group[place]!);
      else if (kind[place] === RECEIVING && source.has(peer[place]!)) add(received, peer[place]!);
    }
    // Of members that count differently the least: an operator that only some have is compared with nothing.
    for (const [id, count] of own) calls.set(id, Math.min(count, calls.get(id) ?? count));
    for (const [sender, transfers] of received)
      if (sender < rank) links.push({ pair: [sender, rank], transfers });
  }
  return { calls, links };
}

/** Transfers vary by some per cent; what matters to a job makes them a good deal longer. */
export const SLOW = 1.2;
const SIGMAS = 3;

/** A burst: so many times what is usual; and how many series with several make floors worthless. */
const BURST = 1.5;
const BURSTY = 0.34;
/** Of an iteration: bursts of a small transfer that queued are everywhere. */
const MATTERS = 0.05;

/**
 * Whether floors tell of the network in this job. On machines that are shared or oversubscribed those of most groups
 * jump to ten times their length and back, because members wait for their own GPU; what then lasts a while is chance,
 * unless it parts from all that was before.
 */
export function areFloorsCalm(all: readonly FloorSeries[], iterationMs: number): boolean {
  let matter = 0;
  let bursty = 0;
  for (const { floorMs } of all) {
    const known = floorMs.filter((ms) => !Number.isNaN(ms));
    const sorted = known.toSorted();
    const low = sorted[sorted.length >> 2] ?? NaN;
    if (!(sorted.at(-1)! - low >= MATTERS * iterationMs)) continue;
    matter++;
    // The first iteration of a ring may lack its beginning.
    let runs = 0;
    for (let i = 1; i < known.length; i++)
      if (known[i]! >= BURST * low && (i === 1 || known[i - 1]! < BURST * low)) runs++;
    if (runs > 1) bursty++;
  }
  return bursty < 2 || bursty <= BURSTY * matter;
}

/** Which of them got slow; `split` is of the same iterations, in the same order. */
export function observed(all: readonly FloorSeries[], split: Split): Observation[] {
  const isCalm = areFloorsCalm(all, median(split.normalMs));
  return all.flatMap(({ ranks, isLink, floorMs }) => {
    const factor = ratio(floorMs, split);
    if (Number.isNaN(factor)) return [];
    const isSlow =
      factor >= SLOW && (isCalm ? standsOut(floorMs, split, SIGMAS) : partsApart(floorMs, split));
    return [
      { ranks, isLink, ratio: factor, growthMs: growth(floorMs, split), isSlow, floor: floorMs },
    ];
  });
}

/** Greyhound §4.3 takes 10 %; but healthy groups differ with where their members sit and what queues before them. */
const DEGRADED = 2;
const PEER_SIGMAS = 8;
const FEWEST_PEERS = 5;
/** Three that agree are enough where the fourth takes several times as long. */
const FEW_PEERS = 3;
const DEGRADED_AMONG_FEW = 5;

/**
 * Groups of the same role and size that do as much take as long (Greyhound §4.3, comparable clusters): one that takes
 * longer than its peers is slow even where there is no before.
 */
export function comparedWithPeers(
  all: readonly FloorSeries[],
  groups: readonly Group[],
  wiring: Wiring,
): Observation[] {
  const clusters = new Map<string, FloorSeries[]>();
  for (const one of all) {
    const role = one.isLink ? "link" : groups[one.group]!.role;
    const machines = new Set(one.ranks.map((rank) => wiring.machineOf(rank))).size;
    const key = `${role} ${one.ranks.length} ${one.count} ${machines}`;
    const known = clusters.get(key);
    if (known) known.push(one);
    else clusters.set(key, [one]);
  }
  return [...clusters.values()].flatMap((cluster) => {
    const levels = cluster.map(({ floorMs }) => median(floorMs.filter((ms) => !Number.isNaN(ms))));
    const usual = median(levels.filter((ms) => !Number.isNaN(ms)));
    const noise = spread(
      levels.filter((ms) => !Number.isNaN(ms)),
      usual,
    );
    const times = cluster.length > FEWEST_PEERS ? DEGRADED : DEGRADED_AMONG_FEW;
    const limit = Math.max(times * usual, usual + PEER_SIGMAS * noise);
    if (cluster.length <= FEW_PEERS || !(usual > 0)) return [];
    return cluster.map(({ ranks, isLink, floorMs }, i) => ({
      ranks,
      isLink,
      ratio: levels[i]! / usual,
      growthMs: levels[i]! - usual,
      isSlow: levels[i]! >= limit,
      floor: floorMs,
    }));
  });
}
