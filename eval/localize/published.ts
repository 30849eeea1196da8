/**
 * Holmes as published, with nothing of ours: iterations longer than δ times the mean of the window up to them (§3.1),
 * abnormal operators by a forest trained for the training (published-training.ts) or by 3 sigma, Algorithm 1 from some
 * random pivots in each of them, and devices ranked by what accumulates over the iterations (§4.4, appendix D). A
 * window is 100 iterations, as in §5.1. Right is the device at the first place, or among the first two (K = 2).
 *
 * Where the paper leaves a choice, the one is taken that did best for it on development cases (30, 1,024 GPUs, other
 * seeds than the tables'): all ends of an iteration's searches count as irregularities (19 of 30), not only the one
 * that began first (13); backwards from the normal member the nearest abnormal operator is followed (19), not the
 * first of the iteration (17); labels from 0.1 % of the iteration (19; at 1 %: 15). Times are on one exact clock.
 *
 * What limits it here, from cases followed by hand:
 * - δ. A fault that adds less than a tenth leaves only iterations that something else made long; what is found there
 *   is that, and the fault is never looked at.
 * - Which end is the earliest. Pauses and congestion somewhere make real but harmless waits early in nearly every
 *   iteration of a large job, and an end that begins there wins over the fault's, which shows late, at the gradients:
 *   of 54 wrong first ends in three cases 39 were as long in the twin without the fault. Counting all ends helps,
 *   because the harmless ones differ from iteration to iteration.
 * - "Both sides abnormal: network". A late stage's transfer queues behind gradients on the NIC (0.2 ms become 4), is
 *   long on both sides without any fault of the link, and comes in every iteration: all five looked at of the other 15.
 * - Device against device. Where one link alone shows a slow NIC, the NICs of both its ends have the same sum; the first
 *   place is then a toss-up. A leaf keeps H = 11 % of its sum at 32 NICs; where the slow groups are
 *   expert groups of 4 under it, each NIC has 4 in 32 = 12.5 % and wins. Pairs of ranks are no devices, so a slow pair
 *   counts as found by the NIC or cable of either end.
 */
import { randomInt, seeded } from "../../src/base/random.ts";
import {
  accumulate,
  type AccumulateOptions,
  type DeviceScore,
  type Irregularity,
} from "./attribution/accumulate.ts";
import { irregularityRate } from "./attribution/irregularity-rate.ts";
import type { Answer } from "./answer.ts";
import { NORMAL, SLOW } from "./cases.ts";
import { jobDevices } from "./job-devices.ts";
import { jobOperators } from "./job-operators.ts";
import type { KeptJob } from "./kept-job.ts";
import { WINDOW, type IsAbnormal } from "./published-detector.ts";
import { locate, operatorKey, type Root } from "./published-search.ts";

export interface PublishedOptions {
  readonly delta: number;
  readonly pivots: number;
  /** Of the pivots. */
  readonly seed: number;
  /** Which ends of the searches of an iteration are irregularities: all, or the one that began first (§5.1.1). */
  readonly counted: "all" | "earliest";
  readonly accumulate: Partial<AccumulateOptions>;
}

export const PUBLISHED_DEFAULTS: Omit<PublishedOptions, "seed"> = {
  delta: 1.1,
  pivots: 3,
  counted: "all",
  accumulate: {},
};

export interface Published {
  /** Numbers of the irregular iterations. */
  readonly irregular: readonly number[];
  /** Of each: the end that began first; null where no search came to an end. */
  readonly first: readonly (Root | null)[];
  /** The most suspect first. */
  readonly devices: readonly DeviceScore[];
}

/** A mean of fewer iterations tells little. */
const EARLIEST = 10;

/** Definition 1 (§3.1). */
export function irregularIterations(iterationMs: readonly number[], delta: number): number[] {
  const found: number[] = [];
  for (let n = EARLIEST + 1; n <= iterationMs.length; n++) {
    const window = iterationMs.slice(Math.max(0, n - WINDOW), n);
    const mean = window.reduce((sum, ms) => sum + ms, 0) / window.length;
    if (iterationMs[n - 1]! > delta * mean) found.push(n);
  }
  return found;
}

/** What a search from a pivot comes to in an iteration. */
export type Locate = (iteration: number, pivot: number) => readonly Root[];

/** Remembers: tables ask for the same searches with other δ, numbers of pivots and priors. */
export function searches(job: KeptJob, isAbnormal: IsAbnormal): Locate {
  const operators = jobOperators(job);
  const known = new Map<string, readonly Root[]>();
  return (iteration, pivot) => {
    const key = `${iteration} ${pivot}`;
    let roots = known.get(key);
    if (!roots) known.set(key, (roots = locate(operators, isAbnormal, iteration, pivot)));
    return roots;
  };
}

export function published(
  job: KeptJob,
  search: Locate,
  options: Partial<PublishedOptions> & Pick<PublishedOptions, "seed">,
): Published {
  const { delta, pivots, seed, counted } = { ...PUBLISHED_DEFAULTS, ...options };
  const irregular = irregularIterations(job.iterationMs, delta);
  const all = irregular.map((iteration) =>
    drawPivots(job.simulation.spec.gpus, pivots, seed * 1_009 + iteration).flatMap((pivot) =>
      search(iteration, pivot),
    ),
  );
  const first = all.map((roots, i) => firstOf(job, roots, irregular[i]!));
  const used = counted === "all" ? all.flat() : first.filter((root) => root !== null);
  const rates = new Map<string, Irregularity>();
  const found = used.map((root) => {
    // The operator tells a group or a pair, the first rank who computes.
    const key = `${root.cause} ${root.at} ${root.op} ${root.ranks[0]}`;
    let known = rates.get(key);
    if (!known) rates.set(key, (known = irregularity(job, root)));
    return known;
  });
  return { irregular, first, devices: ranked(found, job, options) };
}

/** The first of more are the same. */
function drawPivots(gpus: number, count: number, seed: number): number[] {
  const random = seeded(seed);
  const drawn = new Set<number>();
  while (drawn.size < Math.min(count, gpus)) drawn.add(randomInt(random, gpus));
  return [...drawn];
}

function firstOf(job: KeptJob, roots: readonly Root[], iteration: number): Root | null {
  const operators = jobOperators(job);
  let first: Root | null = null;
  let firstMs = Infinity;
  for (const root of roots) {
    const startMs = operators.startMs(root.at, root.op, iteration);
    if (startMs < firstMs) [first, firstMs] = [root, startMs];
  }
  return first;
}

/** Ties are in random order: what always goes together the method cannot tell apart, and the first is no answer. */
function ranked(
  irregularities: readonly Irregularity[],
  job: KeptJob,
  options: Partial<PublishedOptions> & Pick<PublishedOptions, "seed">,
): readonly DeviceScore[] {
  const random = seeded(options.seed ^ 0x71e5);
  const keyed = accumulate(irregularities, jobDevices(job), options.accumulate).map((score) => ({
    score,
    key: random(),
  }));
  return keyed
    .sort((a, b) => b.score.score - a.score.score || a.key - b.key)
    .map(({ score }) => score);
}

function irregularity(job: KeptJob, { cause, ranks, at, op }: Root): Irregularity {
  const { tookMs } = jobOperators(job);
  const series = job.iterationMs.map((_, i) => tookMs(at, op, i + 1));
  const rate = irregularityRate(series, job.iterationMs, WINDOW);
  // §4.4: computation issues are added to GPUs.
  return cause === "compute" ? { cause, ranks, rate, side: "gpu" } : { cause, ranks, rate };
}

/**
 * The same search on a job of twelve iterations with the 3-sigma rule, known slow iterations and plain votes: what
 * run.ts can compare on jobs too short to train for.
 */
export function asPublished(job: KeptJob, pivot: number): Answer {
  const operators = jobOperators(job);
  const read = new Set<number>();
  const isAbnormal: IsAbnormal = (rank, op, iteration) => {
    read.add(operatorKey(rank, op));
    const usual = NORMAL.map((each) => operators.tookMs(rank, op, each));
    const mean = usual.reduce((sum, ms) => sum + ms, 0) / usual.length;
    const squares = usual.reduce((sum, ms) => sum + (ms - mean) ** 2, 0);
    const own = operators.tookMs(rank, op, iteration);
    return own > mean + 3 * Math.sqrt(squares / usual.length) && own > 1.1 * mean;
  };
  const votes = new Map<string, { count: number; root: Root }>();
  for (const iteration of SLOW)
    for (const root of locate(operators, isAbnormal, iteration, pivot)) {
      const key = `${root.cause} ${root.ranks.join()}`;
      const known = votes.get(key);
      if (known) known.count++;
      else votes.set(key, { count: 1, root });
    }
  const best = [...votes.values()].sort((a, b) => b.count - a.count)[0]?.root;
  const total = job.shown.reduce((sum, ops) => sum + ops.length, 0) * job.simulation.lanes.lanes;
  return {
    cause: best?.cause ?? "compute",
    ranks: best?.ranks ?? [],
    share: read.size / total,
  };
}
