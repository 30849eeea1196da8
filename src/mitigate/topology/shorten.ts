/**
 * The same gain with fewer swaps. Swaps within a cycle of the permutation split it, so that one swap less leads there;
 * whatever keeps the iteration below the ceiling is taken back, cheapest first. Then, at equal length, stragglers
 * are brought into fewer stages, interior ones first (Greyhound §5.2).
 */
import type { Swap } from "../../model/mitigation.ts";
import type { Arrangement } from "./arrangement.ts";
import { identity, type Rebalance } from "./cost-model.ts";
import { isInner, SAME } from "./insert.ts";

/** Of longer cycles only those swaps are tried that bring a slot home: a cycle of n has n² / 2 others. */
const LONG_CYCLE = 12;
/** Of so many swaps that may be taken back one is, then all are asked for again. */
const TAKEN_AT_ONCE = 1 / 32;
/** Swaps that may be asked for when ties are settled. */
const TIE_WORK = 20_000;
/** Pairs of moved stragglers that may take each other's place instead. */
const PAIR_WORK = 600;

interface Bounds {
  readonly bad: readonly number[];
  readonly ceilingMs: number;
  readonly rebalance: Rebalance | undefined;
  /** When so much work has been spent the list stays as long as it is. */
  readonly until: number;
}

export function shorten(arrangement: Arrangement, bounds: Bounds): void {
  takeBack(arrangement, bounds);
  while (hasTime(arrangement, bounds) && pairUp(arrangement, bounds)) takeBack(arrangement, bounds);
  settleTies(arrangement, bounds);
}

const hasTime = ({ work }: Arrangement, { until }: Bounds): boolean => work.spent < until;

/** Does it stay below the ceiling? Fractions of micro-batches are a lower bound, hence asked first. */
function holds(arrangement: Arrangement, { ceilingMs, rebalance }: Bounds): boolean {
  const limitMs = ceilingMs * (1 + SAME);
  return arrangement.cost <= limitMs && arrangement.judge(rebalance) <= limitMs;
}

function takeBack(arrangement: Arrangement, bounds: Bounds): void {
  const limitMs = bounds.ceilingMs * (1 + SAME);
  while (hasTime(arrangement, bounds)) {
    const tries: { a: number; b: number; cost: number; cycle: number }[] = [];
    for (const [i, cycle] of cycles(arrangement.placeOf).entries())
      for (const { a, b } of splits(cycle)) {
        if (!hasTime(arrangement, bounds)) break;
        const cost = arrangement.costOfSwap(a, b, limitMs);
        if (cost < Infinity) tries.push({ a, b, cost, cycle: i });
      }
    tries.sort((x, y) => x.cost - y.cost || x.a - y.a || x.b - y.b);
    const most = Math.ceil(tries.length * TAKEN_AT_ONCE);
    // A cycle that has been split is another one.
    const split = new Set<number>();
    for (const { a, b, cycle } of tries) {
      if (split.size === most || !hasTime(arrangement, bounds)) break;
      if (!split.has(cycle) && trySwaps(arrangement, [{ a, b }], bounds)) split.add(cycle);
    }
    if (split.size === 0) return;
  }
}

/** Swaps, unless the ceiling does not hold then. */
function trySwaps(arrangement: Arrangement, swaps: readonly Swap[], bounds: Bounds): boolean {
  for (const { a, b } of swaps) arrangement.swap(a, b);
  if (holds(arrangement, bounds)) return true;
  for (const { a, b } of swaps.toReversed()) arrangement.swap(a, b);
  return false;
}

/** Two stragglers that moved may do with each other's first place: one swap instead of two. */
function pairUp(arrangement: Arrangement, bounds: Bounds): boolean {
  const { placeOf, slotAt } = arrangement;
  const moved = bounds.bad.filter(
    (slot) => placeOf[slot] !== slot && placeOf[placeOf[slot]!] === slot,
  );
  if ((moved.length * moved.length) / 2 > PAIR_WORK) return false;
  for (const [i, a] of moved.entries())
    for (const b of moved.slice(i + 1)) {
      if (placeOf[a] === b) continue;
      if (!hasTime(arrangement, bounds)) return false;
      const swaps = [
        { a, b: slotAt[a]! },
        { a: b, b: slotAt[b]! },
        { a, b },
      ];
      if (trySwaps(arrangement, swaps, bounds)) return true;
    }
  return false;
}

/**
 * A straggler that changed places with a healthy slot may as well have done so with another one, and instead of it
 * another straggler may have moved.
 */
function settleTies(arrangement: Arrangement, bounds: Bounds): void {
  const { placeOf, slotAt } = arrangement;
  const isBad = new Uint8Array(placeOf.length);
  for (const slot of bounds.bad) isBad[slot] = 1;
  const moved = bounds.bad.filter(
    (slot) =>
      placeOf[slot] !== slot && isBad[placeOf[slot]!] === 0 && placeOf[placeOf[slot]!] === slot,
  );
  const work = moved.length * placeOf.length;
  if (work > TIE_WORK) return;
  for (const slot of moved) {
    if (!hasTime(arrangement, bounds)) return;
    const present = { a: slot, b: slotAt[slot]! };
    const least = spread(arrangement, bounds.bad);
    arrangement.swap(present.a, present.b);
    const others = work * bounds.bad.length > TIE_WORK ? [slot] : bounds.bad;
    const better = lessSpread(arrangement, others, bounds, least) ?? present;
    arrangement.swap(better.a, better.b);
  }
}

/** The swap of a straggler with a healthy slot, both where they were at first, that spreads stragglers least. */
function lessSpread(
  arrangement: Arrangement,
  stragglers: readonly number[],
  bounds: Bounds,
  below: number,
): Swap | undefined {
  const { placeOf } = arrangement;
  const limitMs = bounds.ceilingMs * (1 + SAME);
  const isBad = new Set(bounds.bad);
  let least = below;
  let best: Swap | undefined;
  for (const a of stragglers)
    for (let b = 0; b < placeOf.length; b++) {
      if (!hasTime(arrangement, bounds)) return best;
      if (placeOf[a] !== a || placeOf[b] !== b || isBad.has(b)) continue;
      if (arrangement.costOfSwap(a, b, limitMs) === Infinity) continue;
      placeOf[a] = b;
      const score = spread(arrangement, bounds.bad);
      placeOf[a] = a;
      if (score >= least || !trySwaps(arrangement, [{ a, b }], bounds)) continue;
      arrangement.swap(a, b);
      least = score;
      best = { a, b };
    }
  return best;
}

/** How far stragglers are spread: stages that hold one, then how many sit in the first or last stage. */
export function spread({ placeOf, job, work }: Arrangement, bad: readonly number[]): number {
  work.spent += bad.length;
  const hasBad = new Uint8Array(job.stages);
  let outer = 0;
  for (const slot of bad) {
    const stage = Math.floor(placeOf[slot]! / job.replicas);
    hasBad[stage] = 1;
    if (!isInner(stage, job.stages)) outer++;
  }
  return hasBad.reduce((sum, has) => sum + has, 0) * (bad.length + 1) + outer;
}

/** Swaps of a cycle's slots that shorten the way by one. */
function splits(cycle: readonly number[]): Swap[] {
  const pairs: Swap[] = [];
  for (let i = 0; i < cycle.length; i++) {
    if (cycle.length > LONG_CYCLE) pairs.push({ a: cycle[i]!, b: cycle[(i + 1) % cycle.length]! });
    else for (let j = i + 1; j < cycle.length; j++) pairs.push({ a: cycle[i]!, b: cycle[j]! });
  }
  return pairs;
}

/** Slots that change places in a ring, each sitting where the next one came from. */
function cycles(placeOf: Int32Array): number[][] {
  const isSeen = new Uint8Array(placeOf.length);
  const found: number[][] = [];
  for (let start = 0; start < placeOf.length; start++) {
    if (placeOf[start] === start || isSeen[start] === 1) continue;
    const cycle: number[] = [];
    for (let slot = start; isSeen[slot] === 0; slot = placeOf[slot]!) {
      isSeen[slot] = 1;
      cycle.push(slot);
    }
    found.push(cycle);
  }
  return found;
}

/** The shortest list of swaps from the present places to these; stragglers first, as the ones that are to move. */
export function swapList(placeOf: Int32Array, bad: readonly number[]): Swap[] {
  const current = identity(placeOf.length);
  const slotAt = identity(placeOf.length);
  const swaps: Swap[] = [];
  for (const slot of [...bad, ...identity(placeOf.length)]) {
    const place = placeOf[slot]!;
    const other = slotAt[place]!;
    if (other === slot) continue;
    swaps.push({ a: slot, b: other });
    current[other] = current[slot]!;
    slotAt[current[other]] = other;
    current[slot] = place;
    slotAt[place] = slot;
  }
  return swaps;
}
