/**
 * Places for which an iteration takes least. Bad slots are inserted under a ceiling that is halved between what is
 * possible and what is reached (`insert.ts`), in several orders; then single swaps improve what was found, the best
 * first.
 */
import { groupBy } from "../../base/group-by.ts";
import { pick, randomInt, seeded } from "../../base/random.ts";
import { Arrangement } from "./arrangement.ts";
import { consolidate } from "./consolidate.ts";
import { identity, type JobTables, type Rebalance } from "./cost-model.ts";
import { insertUnder, SAME } from "./insert.ts";
import { searchSteps, type Work } from "./work.ts";

const SHUFFLES = 6;

const mean = (values: Float64Array): number =>
  values.reduce((sum, v) => sum + v, 0) / values.length;

/** Shares of the work; what one does not need the next may use. */
const INSERT_SHARE = 0.35;
const DESCEND_SHARE = 0.35;
/** Of the insertions' work when an order after the first is no longer tried. */
const ORDERS_SHARE = 0.6;
const KICKS = 100;
/** Ceilings halve what is left to gain, so that more tell apart nothing that a number can hold. */
const CEILINGS = 40;
/** Jobs with fewer pairs of bad slots and partners get all of them compared. */
const FEW_PAIRS = 550;
/** Where a round of all swaps takes more than this share of the work, every slot moves as soon as it has a partner. */
const ROUND_SHARE = 0.05;
/** Ceilings closer than this to what is possible cannot be distinguished by measuring iterations. */
const CEILING_STEP = 0.001;
/** Partners that are compared where a job is too large to compare all. */
const ENOUGH = 64;
/** Starts that are improved by single swaps. */
const STARTS = 4;

interface Question {
  readonly isShared: boolean;
  readonly bad: readonly number[];
  readonly healthyMs: number;
  /** Other places to begin with. */
  readonly known?: readonly Int32Array[];
}

/** Different arrangements, best first; the present one is among them. */
export function search(
  job: JobTables,
  { isShared, bad, healthyMs, known = [] }: Question,
  work: Work,
): Arrangement[] {
  const steps = searchSteps(job.compute.length);
  const until = work.spent + steps;
  const arranged = (placeOf: Int32Array): Arrangement =>
    new Arrangement(job, placeOf, isShared, work);
  const present = arranged(identity(job.compute.length));
  const found: Arrangement[] = [present.copy(), ...known.map(arranged)];
  const orders = ordersOf(job, bad);
  const insertUntil = work.spent + INSERT_SHARE * steps;
  if (isShared) {
    const gathered = arranged(consolidate(job, bad, work));
    if (gathered.cost < present.cost) found.push(gathered);
    const half = work.spent + (insertUntil - work.spent) / 2;
    found.push(...halveCeilings(job, gathered, orders, { healthyMs, until: half }));
  }
  found.push(...halveCeilings(job, present, orders, { healthyMs, until: insertUntil }));
  const starts = distinct(found).slice(0, STARTS);
  const descendUntil = Math.min(work.spent + DESCEND_SHARE * steps, until);
  for (const [i, start] of starts.entries()) {
    const share = (descendUntil - work.spent) / (starts.length - i);
    descend(start, bad, work.spent + share);
  }
  const kicked = kick(distinct(starts)[0]!, bad, until);
  return distinct([kicked, ...starts, ...found, present]);
}

interface Ceilings {
  readonly healthyMs: number;
  readonly until: number;
}

/** Insertions under ceilings between what is possible and what is reached, each below the one before. */
function halveCeilings(
  job: JobTables,
  start: Arrangement,
  orders: readonly (readonly number[])[],
  { healthyMs, until }: Ceilings,
): Arrangement[] {
  const { isShared, work } = start;
  const found: Arrangement[] = [];
  const isSmall = orders[0]!.length * job.compute.length < FEW_PAIRS;
  const enough = isSmall ? Infinity : ENOUGH;
  const ordersUntil = work.spent + ORDERS_SHARE * (until - work.spent);
  let reached = start.cost;
  let possible = Math.min(healthyMs, reached);
  for (let i = 0; i < CEILINGS && work.spent < until; i++) {
    if (!(reached - possible > CEILING_STEP * possible)) break;
    const ceilingMs = (reached + possible) / 2;
    let holds = false;
    for (const [k, order] of orders.entries()) {
      if (k > 0 && work.spent > ordersUntil) break;
      const placeOf = insertUnder(job, start, { order, ceilingMs, enough, until });
      if (placeOf === undefined) continue;
      const arrangement = new Arrangement(job, placeOf, isShared, work);
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
function kick(from: Arrangement, bad: readonly number[], until: number): Arrangement {
  const random = seeded(2);
  const byMachine = groupBy(identity(from.placeOf.length), (slot) => from.job.machine[slot]!);
  const machines = [...byMachine.values()];
  let best = from;
  for (let kicks = 0; from.work.spent < until && kicks < KICKS; kicks++) {
    const next = best.copy();
    if (machines.length < from.placeOf.length && random() < 0.5)
      exchangeMachines(next, pick(random, machines), pick(random, machines));
    else
      for (let i = randomInt(random, 3); i >= 0; i--)
        next.swap(pick(random, bad), randomInt(random, from.placeOf.length));
    descend(next, bad, until);
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

/** Swaps as long as one helps, the best first. */
function descend(arrangement: Arrangement, bad: readonly number[], until: number): void {
  const { work } = arrangement;
  const size = arrangement.placeOf.length;
  const most = ROUND_SHARE * (until - work.spent);
  while (work.spent < until) {
    const slots = critical(arrangement, bad);
    const isLong = slots.length * size * arrangement.stepsOfSwap > most;
    let best: Move | undefined;
    let hasMoved = false;
    for (const slot of slots) {
      if (work.spent > until) break;
      const move = bestMove(arrangement, slot, best ?? arrangement, until);
      if (move === undefined) continue;
      if (isLong) {
        arrangement.swap(move.a, move.b);
        hasMoved = true;
      } else best = move;
    }
    if (best) arrangement.swap(best.a, best.b);
    if (!best && !hasMoved) return;
  }
}

interface Move {
  readonly a: number;
  readonly b: number;
  readonly cost: number;
  readonly load: number;
}

/** With whom a slot changes places best, if that is better than what is known. */
function bestMove(
  arrangement: Arrangement,
  slot: number,
  known: { readonly cost: number; readonly load: number },
  until: number,
): Move | undefined {
  const { work, placeOf } = arrangement;
  let { cost, load } = known;
  let b = -1;
  for (let other = 0; other < placeOf.length && work.spent < until; other++) {
    if (other === slot) continue;
    const otherCost = arrangement.costOfSwap(slot, other, cost * (1 + SAME));
    if (otherCost === Infinity) continue;
    const isCheaper = otherCost < cost * (1 - SAME);
    if (!isCheaper && !(arrangement.loadOfSwap < load * (1 - SAME))) continue;
    b = other;
    cost = otherCost;
    load = arrangement.loadOfSwap;
  }
  return b < 0 ? undefined : { a: slot, b, cost, load };
}

/**
 * The same with whole micro-batches; returns the cost reached. Every question costs an allocation, so large jobs get
 * few: only swaps that would help with fractions of micro-batches, which is a lower bound, are asked for.
 */
export function descendExactly(
  arrangement: Arrangement,
  bad: readonly number[],
  rebalance: Rebalance,
  until: number,
): number {
  const { work } = arrangement;
  let cost = arrangement.judge(rebalance);
  for (let idle = 0, i = 0; idle < bad.length && work.spent < until; i++) {
    const slot = bad[i % bad.length]!;
    idle++;
    for (let other = 0; other < arrangement.placeOf.length && work.spent < until; other++) {
      if (other === slot) continue;
      if (arrangement.costOfSwap(slot, other, cost * (1 - SAME)) === Infinity) continue;
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

/**
 * In which order bad slots are placed (`insert.ts`): the hardest first, but what is hard depends on the job.
 * Who does most harm first; who computes slowly; who has the worst network; some by chance.
 */
function ordersOf(job: JobTables, bad: readonly number[]): number[][] {
  const passMs = mean(job.stageMs) * mean(job.microBatches);
  const gradientMs = mean(job.gradientMs);
  const compute = (slot: number): number => (job.compute[slot]! - 1) * passMs;
  const network = (slot: number): number => {
    let worst = job.network[slot]! - 1;
    for (let i = job.links.from[slot]!; i < job.links.from[slot + 1]!; i++)
      worst = Math.max(worst, job.links.factor[job.links.of[i]!]! - 1);
    return worst * gradientMs;
  };
  const by = (harm: (slot: number) => number): number[] => {
    const harms = new Map(bad.map((slot) => [slot, harm(slot)]));
    return [...bad].sort((a, b) => harms.get(b)! - harms.get(a)! || a - b);
  };
  const large = passMs + gradientMs;
  const orders = [
    by((slot) => compute(slot) + network(slot)),
    by((slot) => compute(slot) * large + network(slot)),
    by((slot) => compute(slot) + network(slot) * large),
  ];
  const random = seeded(1);
  for (let i = 0; i < SHUFFLES; i++) orders.push(shuffled(bad, random));
  return orders;
}

function shuffled(values: readonly number[], random: () => number): number[] {
  const out = [...values];
  for (let i = out.length - 1; i > 0; i--) {
    const j = randomInt(random, i + 1);
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}
