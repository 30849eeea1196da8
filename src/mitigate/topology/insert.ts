/**
 * Stragglers one after the other under a ceiling: all are thought healthy, then one by one is what it is. Where the
 * iteration stays below the ceiling it stays where it sits; where not it changes places with whom it costs least. Unlike
 * single swaps from the present state this sees the end of a plateau, where many must move before the maximum falls, and
 * it moves none that the ceiling can bear.
 */
import { Arrangement } from "./arrangement.ts";
import { healthyTables, type JobTables } from "./cost-model.ts";

/** Costs that differ by less are the same, added up in another order. */
export const SAME = 1e-9;

/** How to fill the places. */
interface Insertion {
  /** All bad slots, hardest first. */
  readonly order: readonly number[];
  readonly ceilingMs: number;
  /** Of so many partners that the ceiling allows the best is taken. */
  readonly enough: number;
  /** Not to be begun or gone on with when so much work has been spent. */
  readonly until: number;
}

/** Where slots sit in the end; undefined where the ceiling does not hold, or when `until` is reached. */
export function insertUnder(
  job: JobTables,
  start: Arrangement,
  { order, ceilingMs, enough, until }: Insertion,
): Int32Array | undefined {
  const masked = healthyTables(job);
  const { work } = start;
  const arrangement = new Arrangement(masked, start.placeOf, start.isShared, work);
  const isPlaced = new Uint8Array(job.compute.length);
  const placedIn = new Int32Array(job.stages);
  const limitMs = ceilingMs * (1 + SAME);
  for (const slot of order) {
    if (work.spent > until) return undefined;
    reveal(job, masked, slot, isPlaced);
    arrangement.refresh(slot);
    if (arrangement.cost > limitMs) {
      const partner = bestPartner(arrangement, slot, { isPlaced, placedIn, limitMs, enough });
      if (partner < 0 || work.spent > until) return undefined;
      arrangement.swap(slot, partner);
    }
    isPlaced[slot] = 1;
    placedIn[stageOf(arrangement, slot)]!++;
  }
  return arrangement.placeOf;
}

/** A link is slow as soon as both its ends are there. */
function reveal(job: JobTables, masked: JobTables, slot: number, isPlaced: Uint8Array): void {
  masked.compute[slot] = job.compute[slot]!;
  masked.network[slot] = job.network[slot]!;
  const { a, b, from, of, factor } = job.links;
  for (let i = from[slot]!; i < from[slot + 1]!; i++) {
    const link = of[i]!;
    if (isPlaced[a[link] === slot ? b[link]! : a[link]!] === 1)
      masked.links.factor[link] = factor[link]!;
  }
}

interface Room {
  readonly isPlaced: Uint8Array;
  /** By stage: bad slots that have been placed. */
  readonly placedIn: Int32Array;
  readonly limitMs: number;
  readonly enough: number;
}

/**
 * Whom to change places with: least cost, then least load, then a stage that has stragglers already, then an inner one.
 * Replica by replica, its own first, so that those looked at are of all stages.
 */
function bestPartner(
  arrangement: Arrangement,
  slot: number,
  { isPlaced, placedIn, limitMs, enough }: Room,
): number {
  const { replicas, stages } = arrangement.job;
  const own = arrangement.placeOf[slot]! % replicas;
  let best = -1;
  let cost = limitMs;
  let load = Infinity;
  let rank = Infinity;
  let allowed = 0;
  for (let i = 0; i < replicas && allowed < enough; i++) {
    const replica = (own + i) % replicas;
    for (let stage = 0; stage < stages; stage++) {
      const other = arrangement.slotAt[stage * replicas + replica]!;
      if (isPlaced[other] === 1 || other === slot) continue;
      const otherCost = arrangement.costOfSwap(slot, other, limitMs);
      if (otherCost === Infinity) continue;
      allowed++;
      if (otherCost > cost * (1 + SAME)) continue;
      const otherLoad = arrangement.loadOfSwap;
      const isCheaper = otherCost < cost * (1 - SAME);
      if (!isCheaper && otherLoad > load * (1 + SAME)) continue;
      // First and last stage carry embedding and head besides, hence inner ones first (§5.2).
      const otherRank = (placedIn[stage]! > 0 ? 0 : 2) + (isInner(stage, stages) ? 0 : 1);
      if (!isCheaper && otherLoad > load * (1 - SAME) && otherRank >= rank) continue;
      best = other;
      cost = otherCost;
      load = otherLoad;
      rank = otherRank;
    }
  }
  return best;
}

const stageOf = (arrangement: Arrangement, slot: number): number =>
  Math.floor(arrangement.placeOf[slot]! / arrangement.job.replicas);

export const isInner = (stage: number, stages: number): boolean => stage > 0 && stage < stages - 1;
