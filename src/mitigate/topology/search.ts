/**
 * Places for which an iteration takes least. Bad slots are inserted under a ceiling that is halved between what is
 * possible and what is reached (`insert.ts`), in several orders; then single swaps improve what was found. Work is
 * counted in swaps asked for, not in seconds, so that the same job always gets the same plan.
 */
import { groupBy } from "../../base/group-by.ts";
import { pick, randomInt, seeded } from "../../base/random.ts";
import { Arrangement } from "./arrangement.ts";
import { consolidate } from "./consolidate.ts";
import { identity, type JobTables, type Rebalance } from "./cost-model.ts";
import { insertUnder, SAME } from "./insert.ts";
import { ordersOf } from "./orders.ts";

/** Swaps that may be asked for, a microsecond each. */
const INSERT_WORK = 50_000;
const DESCEND_WORK = 50_000;
const KICK_WORK = 50_000;
const KICKS = 100;
/** Slots times allocations of whole micro-batches. */
const EXACT_WORK = 100_000;
/** Ceilings closer than this to what is possible are not told apart by anyone who measures iterations. */
const CEILING_STEP = 0.001;
/** Partners that are compared where a job is too large to compare all. */
const ENOUGH = 64;
/** Starts that are improved by single swaps. */
const STARTS = 4;

/** Different arrangements, best first; the present one is among them. */
export function search(
  job: JobTables,
  isShared: boolean,
  bad: readonly number[],
  healthyMs: number,
): Arrangement[] {
  const present = new Arrangement(job, identity(job.compute.length), isShared);
  const found: Arrangement[] = [present.copy()];
  const orders = ordersOf(job, bad);
  if (isShared) {
    const gathered = new Arrangement(job, consolidate(job, bad), isShared);
    if (gathered.cost < present.cost) found.push(gathered);
    found.push(...halveCeilings(job, gathered, orders, healthyMs));
  }
  found.push(...halveCeilings(job, present, orders, healthyMs));
  const starts = distinct(found).slice(0, STARTS);
  for (const start of starts) descend(start, bad, DESCEND_WORK / starts.length);
  const kicked = kick(distinct(starts)[0]!, bad, KICK_WORK);
  return distinct([kicked, ...starts, ...found, present]);
}

/** Insertions under ceilings between what is possible and what is reached, each below the one before. */
function halveCeilings(
  job: JobTables,
  start: Arrangement,
  orders: readonly (readonly number[])[],
  healthyMs: number,
): Arrangement[] {
  const { isShared, placeOf: from } = start;
  const found: Arrangement[] = [];
  // Halving takes about ten ceilings; an order that fails is found out early.
  const isSmall = orders[0]!.length * from.length * orders.length * 10 < INSERT_WORK;
  const enough = isSmall ? Infinity : ENOUGH;
  let reached = start.cost;
  let possible = Math.min(healthyMs, reached);
  let work = 0;
  while (reached - possible > CEILING_STEP * possible) {
    const ceilingMs = (reached + possible) / 2;
    let holds = false;
    for (const [i, order] of orders.entries()) {
      if (i > 0 && work > INSERT_WORK) break;
      const insertion = insertUnder(job, isShared, { from, order, ceilingMs, enough });
      work += insertion.work;
      if (insertion.placeOf === undefined) continue;
      const arrangement = new Arrangement(job, insertion.placeOf, isShared);
      found.push(arrangement);
      reached = Math.min(reached, arrangement.cost);
      holds = true;
      break;
    }
    if (!holds) possible = ceilingMs;
  }
  return found;
}

/**
 * Out of a dead end: a few swaps by chance, then downhill again, kept where it ends lower. Where slots share machines
 * whole machines change places, too, since pairs that speak over NVLink lose by any single swap.
 */
function kick(from: Arrangement, bad: readonly number[], work: number): Arrangement {
  const random = seeded(2);
  const byMachine = groupBy(identity(from.placeOf.length), (slot) => from.job.machine[slot]!);
  const machines = [...byMachine.values()];
  let best = from;
  for (let done = 0, kicks = 0; done < work && kicks < KICKS; kicks++) {
    const next = best.copy();
    if (machines.length < from.placeOf.length && random() < 0.5)
      exchangeMachines(next, pick(random, machines), pick(random, machines));
    else
      for (let i = randomInt(random, 3); i >= 0; i--)
        next.swap(pick(random, bad), randomInt(random, from.placeOf.length));
    descend(next, bad, work - done);
    done += next.asked + from.placeOf.length / 4 + 10;
    const isCheaper = next.cost < best.cost * (1 - SAME);
    if (isCheaper || (next.cost < best.cost * (1 + SAME) && next.load < best.load)) best = next;
  }
  return best;
}

function exchangeMachines(
  arrangement: Arrangement,
  some: readonly number[],
  others: readonly number[],
): void {
  for (let i = 0; i < Math.min(some.length, others.length); i++)
    arrangement.swap(some[i]!, others[i]!);
}

/** Swaps as long as one helps. */
export function descend(arrangement: Arrangement, bad: readonly number[], work: number): void {
  const until = arrangement.asked + work;
  while (arrangement.asked < until) {
    let a = -1;
    let b = -1;
    let cost = arrangement.cost;
    let load = arrangement.load;
    for (const slot of critical(arrangement, bad)) {
      for (let other = 0; other < arrangement.placeOf.length; other++) {
        if (other === slot) continue;
        const otherCost = arrangement.costOfSwap(slot, other, cost * (1 + SAME));
        if (otherCost === Infinity) continue;
        const isCheaper = otherCost < cost * (1 - SAME);
        if (!isCheaper && arrangement.loadOfSwap >= load * (1 - SAME)) continue;
        a = slot;
        b = other;
        cost = otherCost;
        load = arrangement.loadOfSwap;
      }
      if (arrangement.asked > until) break;
    }
    if (a < 0) return;
    arrangement.swap(a, b);
  }
}

/**
 * The same with whole micro-batches; returns the cost reached. Every question costs an allocation, so large jobs get
 * few: only swaps that would help with fractions of micro-batches, which is a lower bound, are asked for.
 */
export function descendExactly(
  arrangement: Arrangement,
  bad: readonly number[],
  rebalance: Rebalance,
): number {
  let cost = arrangement.judge(rebalance);
  let left = Math.ceil(EXACT_WORK / arrangement.placeOf.length);
  for (let idle = 0, i = 0; idle < bad.length && left > 0; i++) {
    const slot = bad[i % bad.length]!;
    idle++;
    for (let other = 0; other < arrangement.placeOf.length && left > 0; other++) {
      if (other === slot) continue;
      if (arrangement.costOfSwap(slot, other, cost * (1 - SAME)) === Infinity) continue;
      left--;
      arrangement.swap(slot, other);
      const swapped = arrangement.judge(rebalance);
      if (swapped < cost * (1 - SAME)) {
        cost = swapped;
        idle = 0;
      } else arrangement.swap(slot, other);
    }
  }
  return cost;
}

/**
 * Slots whose moving may help. Healthy ones are among them only where slots share machines: there a pipeline may
 * have to come back into a machine when a straggler has left it.
 */
function critical(arrangement: Arrangement, bad: readonly number[]): readonly number[] {
  const { placeOf, slotAt, job, criticalReplica, criticalStage } = arrangement;
  if (arrangement.isShared) return bad;
  const isCritical = (slot: number): boolean =>
    placeOf[slot]! % job.replicas === criticalReplica ||
    Math.floor(placeOf[slot]! / job.replicas) === criticalStage;
  if (job.slotsPerMachine === 1) return bad.filter(isCritical);
  const slots = new Set<number>();
  for (let s = 0; s < job.stages; s++) slots.add(slotAt[s * job.replicas + criticalReplica]!);
  if (job.slotsPerMachine >= job.replicas)
    for (let r = 0; r < job.replicas; r++) slots.add(slotAt[criticalStage * job.replicas + r]!);
  for (const slot of bad) if (isCritical(slot)) slots.add(slot);
  return [...slots];
}

/** By cost, and of those that cost and load the same the first. */
function distinct(arrangements: readonly Arrangement[]): Arrangement[] {
  const sorted = [...arrangements].sort((a, b) => a.cost - b.cost || a.load - b.load);
  return sorted.filter(
    ({ cost, load }, i) => cost !== sorted[i - 1]?.cost || load !== sorted[i - 1]?.load,
  );
}
