/**
 * S3: which slots change places so that a fault costs least (Greyhound §5.2). Greyhound moves congested links from
 * gradient exchanges onto pipelines and brings stragglers into the fewest stages; here both follow from one cost model
 * (`cost-model.ts`), which also finds places where a slow link carries nothing at all.
 */
import type { PlacedJob, TopologyPlan } from "../../model/mitigation.ts";
import { Arrangement } from "./arrangement.ts";
import { checkJob, checkTimes } from "./check-job.ts";
import {
  healthyTables,
  identity,
  iterationMs,
  jobTables,
  type JobTables,
  type Rebalance,
} from "./cost-model.ts";
import { descendExactly, search } from "./search.ts";
import { shorten, spread, swapList } from "./shorten.ts";
import { afterSteps, type Work } from "./work.ts";
import { count, thousands } from "../../base/text.ts";

interface Outcome {
  readonly swaps: number;
  readonly placeOf: Int32Array;
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly healthyMs: number;
}

const ms = (value: number): string =>
  `${value < 100 ? value.toFixed(1) : thousands(Math.round(value))} ms`;

/** Below this share of an iteration a swap is not worth the pause that it costs. */
const LEAST_GAIN = 0.01;
/** Swaps that contribute less than this to the iteration are taken back. */
const TIE = 0.001;
/** Arrangements as good as the best whose lists of swaps are compared. */
const FINALISTS = 3;

interface TopologyOptions {
  /**
   * Makespan when micro-batches are shared out anew for the places (S2 after S3); all times of the plan are then with
   * it. The search itself counts fractions of micro-batches; whole ones decide between the plans that it finds.
   */
  readonly rebalance?: Rebalance;
}

export function planTopology(job: PlacedJob, options: TopologyOptions = {}): TopologyPlan {
  checkJob(job);
  const { rebalance } = options;
  const tables = jobTables(job);
  const present = identity(job.slots.length);
  const beforeMs = iterationMs(tables, present, rebalance);
  const healthyMs = iterationMs(healthyTables(tables), present, rebalance);
  checkTimes(beforeMs, healthyMs, job.restMs);
  const bad = badSlots(tables);
  const nothing = (bestMs: number): TopologyPlan => ({
    swaps: [],
    placeOf: present,
    beforeMs,
    afterMs: beforeMs,
    healthyMs,
    why: explainNothing(tables, bad, beforeMs, bestMs),
  });
  if (bad.length === 0 || job.slots.length === 1) return nothing(beforeMs);

  const work: Work = { spent: 0 };
  const best = finalists(tables, bad, rebalance, work);
  const bestMs = best[0]!.judge(rebalance);
  if (!(beforeMs - bestMs >= LEAST_GAIN * beforeMs)) return nothing(bestMs);
  const ceilingMs = Math.min(bestMs * (1 + TIE), beforeMs * (1 - LEAST_GAIN));
  const end = work.spent + afterSteps(job.slots.length);
  const plans = best.map((arrangement, i) => {
    const until = work.spent + (end - work.spent) / (best.length - i);
    shorten(arrangement, { bad, ceilingMs, rebalance, until });
    return {
      placeOf: arrangement.placeOf,
      swaps: swapList(arrangement.placeOf, bad),
      afterMs: arrangement.judge(rebalance),
      spread: spread(arrangement, bad),
    };
  });
  plans.sort(
    (a, b) => a.swaps.length - b.swaps.length || a.spread - b.spread || a.afterMs - b.afterMs,
  );
  const { placeOf, swaps, afterMs } = plans[0]!;
  const outcome = { swaps: swaps.length, placeOf, beforeMs, afterMs, healthyMs };
  return { swaps, placeOf, beforeMs, afterMs, healthyMs, why: explainSwaps(tables, bad, outcome) };
}

/** Slow, or at an end of a slow link. */
function badSlots({ compute, network, links }: JobTables): number[] {
  return [...identity(compute.length)].filter(
    (slot) => compute[slot]! > 1 || network[slot]! > 1 || links.from[slot + 1]! > links.from[slot]!,
  );
}

/** The best arrangement, and others that are as good. */
function finalists(
  job: JobTables,
  bad: readonly number[],
  rebalance: Rebalance | undefined,
  work: Work,
): Arrangement[] {
  const found = rebalance ? searchBoth(job, bad, rebalance, work) : searchPlain(job, bad, work);
  const judged = found.map((arrangement) => ({ arrangement, ms: arrangement.judge(rebalance) }));
  judged.sort((a, b) => a.ms - b.ms);
  if (rebalance) {
    const end = work.spent + afterSteps(job.compute.length);
    for (const [i, one] of judged.slice(0, FINALISTS).entries()) {
      const until = work.spent + (end - work.spent) / (FINALISTS - i);
      one.ms = descendExactly(one.arrangement, bad, rebalance, until);
    }
    judged.sort((a, b) => a.ms - b.ms);
  }
  return judged
    .filter(({ ms }) => ms <= judged[0]!.ms * (1 + TIE))
    .slice(0, FINALISTS)
    .map(({ arrangement }) => arrangement);
}

function searchPlain(job: JobTables, bad: readonly number[], work: Work): Arrangement[] {
  const healthyMs = iterationMs(healthyTables(job), identity(job.compute.length));
  return search(job, { isShared: false, bad, healthyMs }, work);
}

/** Places that are good with the micro-batches as they are may be as good as any when these are shared out anew. */
function searchBoth(
  job: JobTables,
  bad: readonly number[],
  rebalance: Rebalance,
  work: Work,
): Arrangement[] {
  const plain = searchPlain(job, bad, work).slice(0, FINALISTS);
  const known = plain.map(({ placeOf }) => placeOf);
  const healthyMs = iterationMs(healthyTables(job), identity(job.compute.length), rebalance);
  const found = search(job, { isShared: true, bad, healthyMs, known }, work);
  // Improved or not: the search counts fractions of micro-batches, and whole ones may like them better.
  return [...found, ...known.map((placeOf) => new Arrangement(job, placeOf, true, work))];
}

/** What the swaps of a topology plan achieve, in one sentence. */
function explainSwaps(job: JobTables, bad: readonly number[], outcome: Outcome): string {
  const { beforeMs, afterMs, healthyMs } = outcome;
  const before = tally(job, bad, identity(outcome.placeOf.length));
  const after = tally(job, bad, outcome.placeOf);
  const changes = before.flatMap(([what, n], i) =>
    after[i]![1] < n ? [`${what} ${n} → ${after[i]![1]}`] : [],
  );
  const how = changes.length > 0 ? changes.join(", ") : "slow slots move to where they cost less";
  return `${count(outcome.swaps, "swap")} ${outcome.swaps === 1 ? "brings" : "bring"} an iteration from ${ms(beforeMs)} to ${ms(afterMs)} (${ms(healthyMs)} on healthy devices): ${how}`;
}

/** Why nothing is moved; `bestMs` is the best that was found. */
function explainNothing(
  job: JobTables,
  bad: readonly number[],
  beforeMs: number,
  bestMs: number,
): string {
  const slots = job.compute.length;
  if (bad.length === 0) return "no swap: no slot and no link is slow";
  if (slots === 1) return "no swap: the job has one slot only";
  const gain = `${((100 * (beforeMs - bestMs)) / beforeMs).toFixed(1)} %`;
  if (bad.length === slots)
    return `no swap: all ${thousands(slots)} slots are slow or end at a slow link, there is no room (best found: ${gain} faster)`;
  return `no swap: no other places make an iteration of ${ms(beforeMs)} faster by 1 % (best found: ${gain})`;
}

/** Where slow slots and links are: the fewer the better. */
function tally(job: JobTables, bad: readonly number[], placeOf: Int32Array): [string, number][] {
  const { replicas, links, compute, network } = job;
  const stageOf = (slot: number): number => Math.floor(placeOf[slot]! / replicas);
  const replicaOf = (slot: number): number => placeOf[slot]! % replicas;
  const slow = bad.filter((slot) => compute[slot]! > 1 || network[slot]! > 1);
  let inExchange = 0;
  let inPipeline = 0;
  for (let link = 0; link < links.factor.length; link++) {
    const a = links.a[link]!;
    const b = links.b[link]!;
    if (stageOf(a) === stageOf(b)) inExchange++;
    if (replicaOf(a) === replicaOf(b) && Math.abs(stageOf(a) - stageOf(b)) === 1) inPipeline++;
  }
  return [
    ["slow links that gradients pass", inExchange],
    ["slow links that activations pass", inPipeline],
    ["stages with slow slots", new Set(slow.map(stageOf)).size],
    ["replicas with slow slots", new Set(slow.map(replicaOf)).size],
  ];
}
