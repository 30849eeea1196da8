/**
 * When the micro-batches of a running job are shared out anew (Greyhound §5.2, S2). Times come in after each iteration;
 * the exact optimum for them is at hand at any time, so the question is only whether it is worth believing.
 *
 * By the ski-rental rule (Algorithm 1) a strategy is applied once the loss has reached its cost, and S2 costs next to
 * nothing: the answer would be "at once". What holds it back is noise. The best allocation for times that were measured
 * always looks better than the one in force, for it fits their noise, too. So each iteration judges the plan that was made
 * before it: on iterations that it was not made from, what fits noise only comes out worse.
 *
 * A fault that comes and goes makes changes wrong soon after they were right. What a change has cost since, beside the
 * allocation before it, is measured; the next change of its kind has to save as much first. So changes that pay off are
 * never held back, however many, and waiting never costs more than wrong changes did.
 */
import { allocateMicroBatches } from "../../../mitigate/microbatches.ts";
import { type Estimate, estimateTimes, medianOf, middle } from "./replica-times.ts";

export interface JobShape {
  /** Replicas of the model. */
  readonly groups: number;
  /** Micro-batches of the global batch. */
  readonly total: number;
  readonly multipleOf: number;
  /** How long a pipeline fills and drains, in micro-batch times: (stages − 1) / chunks of a stage; 0 without one. */
  readonly bubble: number;
}

/** An iteration that has ended. By replica: its micro-batches, and the seconds it computed them (null: not known). */
export interface IterationReport {
  readonly iteration: number;
  readonly counts: readonly number[];
  readonly seconds: readonly (number | null)[];
}

export interface AllocationChange {
  /** The last iteration that was reported before it. */
  readonly iteration: number;
  readonly before: readonly number[];
  readonly counts: readonly number[];
  /** What the slowest replica takes with both, by the times of late. */
  readonly beforeS: number;
  readonly afterS: number;
  readonly why: string;
}

export interface AllocationState {
  readonly counts: readonly number[];
  readonly weights: readonly number[];
  readonly lastIteration: number | null;
  /** Of the last report: what the job had in force. */
  readonly reportedCounts: readonly number[] | null;
  /** By replica, median of late; null before there are enough reports. */
  readonly secondsPerMicroBatch: readonly number[] | null;
  /** A better allocation that is being watched: for how many iterations, what it would have saved in them, and what it must. */
  readonly candidate: {
    readonly counts: readonly number[];
    readonly watched: number;
    readonly savedS: number;
    readonly neededS: number;
  } | null;
  /** Why nothing can be learnt at the moment; null where all is well. */
  readonly remark: string | null;
}

export interface AllocationFollower {
  /** The change that the report leads to; null where the allocation stays. */
  report(report: IterationReport): AllocationChange | null;
  state(): AllocationState;
}

/** Medians of so many iterations tell what suits: the last one alone shows large changes, more of them small ones. */
const WINDOWS = [1, 3, 8];
/** Noise follows from so many; the first plan needs some of them. */
const NOISE_ITERATIONS = 16;
/** Iterations whose median people see. */
const MIDDLE = 3;
const LEAST_ITERATIONS = 5;

/** What can be the time of an iteration; anything else would only lead arithmetic astray. */
const LEAST_S = 1e-9;
const MOST_S = 1e9;

interface Candidate {
  readonly counts: readonly number[];
  /** Iterations since something other than the allocation in force suits, and what that would have saved in them. */
  readonly watched: number;
  readonly savedS: number;
}

export function followAllocation(shape: JobShape): AllocationFollower {
  const even = evenAllocation(shape);
  let current = even;
  let lastIteration: number | null = null;
  let reportedCounts: readonly number[] | null = null;
  let remark: string | null = null;
  /** Seconds per micro-batch of the last iterations, a row each. */
  let rows: Float64Array[] = [];
  let candidate: Candidate | null = null;
  /** The allocation before the last change, and what that change has cost since: below 0 where it paid off. */
  let before: readonly number[] | null = null;
  let costS = 0;
  /** What changes to equal shares, and to others, have cost so far without paying off. */
  const debtS = { even: 0, uneven: 0 };

  const directionOf = (counts: readonly number[]): "even" | "uneven" =>
    counts === even ? "even" : "uneven";

  /** What suits the times: equal shares where others would gain next to nothing, what is in force likewise. */
  const suiting = ({ times, margin }: Estimate, isSure: boolean): readonly number[] => {
    const best = allocateMicroBatches({
      timesMs: times,
      fixedMs: times.map((time) => shape.bubble * time),
      total: shape.total,
      multipleOf: shape.multipleOf,
    });
    const evenIsGood = span(even, times, shape) * (1 - margin) <= best.makespan;
    const counts = evenIsGood ? even : best.allocation;
    const least = counts === even && isSure ? 0 : margin;
    return 1 - span(counts, times, shape) / span(current, times, shape) > least ? counts : current;
  };

  const adopt = (counts: readonly number[], { times }: Estimate): AllocationChange => {
    if (before !== null) {
      const direction = directionOf(current);
      debtS[direction] = Math.max(0, debtS[direction] + costS);
    }
    const change = {
      iteration: lastIteration!,
      before: current,
      counts,
      beforeS: span(current, times, shape),
      afterS: span(counts, times, shape),
      why: reasonOf(times, counts === even),
    };
    before = current;
    costS = 0;
    current = counts;
    candidate = null;
    return change;
  };

  return {
    report(report) {
      const { iteration, counts, seconds } = report;
      if (lastIteration !== null && iteration <= lastIteration) {
        if (iteration < lastIteration)
          remark = `iteration ${iteration} was reported after iteration ${lastIteration} and does not count`;
        return null;
      }
      // A controller that comes (back) in the middle of a job takes over what is in force there.
      if (lastIteration === null && fits(counts, shape)) current = counts;
      lastIteration = iteration;
      reportedCounts = counts;
      remark = whyUnusable(report);
      if (remark !== null) return null;
      const row = Float64Array.from(seconds, (s, i) => s! / (counts[i]! + shape.bubble));
      const nowS = span(current, row, shape);
      if (before !== null) costS += nowS - span(before, row, shape);
      // The iteration judges the plan that was made before it.
      const savedS = candidate === null ? 0 : nowS - span(candidate.counts, row, shape);
      rows = [...rows.slice(1 - NOISE_ITERATIONS), row];
      if (rows.length < LEAST_ITERATIONS) return null;
      let [estimate, suits] = [estimateTimes(rows, rows), current];
      for (const [k, window] of WINDOWS.entries()) {
        estimate = estimateTimes(rows.slice(-window), rows);
        suits = suiting(estimate, k === WINDOWS.length - 1);
        if (suits !== current) break;
      }
      if (suits === current) candidate = null;
      else
        candidate = {
          counts: suits,
          watched: candidate === null ? 0 : candidate.watched + 1,
          savedS: Math.max(0, (candidate?.savedS ?? 0) + savedS),
        };
      if (candidate === null || candidate.watched === 0) return null;
      const margin = suits === even ? 0 : estimate.margin * nowS * candidate.watched;
      const isProven = candidate.savedS > Math.max(margin, debtS[directionOf(suits)]);
      return isProven ? adopt(suits, estimate) : null;
    },
    state: () => ({
      counts: current,
      weights: weightsOf(current, shape),
      lastIteration,
      reportedCounts,
      secondsPerMicroBatch: rows.length === 0 ? null : [...middle(rows.slice(-MIDDLE))],
      candidate: candidate && { ...candidate, neededS: debtS[directionOf(candidate.counts)] },
      remark,
    }),
  };
}

/** What replicas take that are alike. Throws a UserError where the shape is not possible. */
export function evenAllocation({ groups, total, multipleOf }: JobShape): readonly number[] {
  return allocateMicroBatches({ timesMs: new Float64Array(groups).fill(1), total, multipleOf })
    .allocation;
}

/** A replica's mean gradient times its weight, averaged over replicas, is the mean over all micro-batches. */
export function weightsOf(counts: readonly number[], { groups, total }: JobShape): number[] {
  return counts.map((count) => (count * groups) / total);
}

/** Whether the counts share out the global batch. */
export function fits(counts: readonly number[], { groups, total, multipleOf }: JobShape): boolean {
  const whole = counts.every((m) => Number.isSafeInteger(m) && m >= 1 && m % multipleOf === 0);
  return whole && counts.length === groups && counts.reduce((sum, m) => sum + m, 0) === total;
}

function whyUnusable({ iteration, seconds }: IterationReport): string | null {
  const unknown = seconds.flatMap((s, i) => (s !== null && s > LEAST_S && s < MOST_S ? [] : [i]));
  if (unknown.length === 0) return null;
  const who = unknown.length === 1 ? `replica ${unknown[0]}` : `${unknown.length} replicas`;
  return `${who} gave no usable time in iteration ${iteration}: the allocation in force stays`;
}

function span(counts: readonly number[], times: Float64Array, { bubble }: JobShape): number {
  return counts.reduce((most, count, i) => Math.max(most, (count + bubble) * times[i]!), 0);
}

function reasonOf(times: Float64Array, isEven: boolean): string {
  if (isEven) return "the replicas are alike again";
  const slowest = times.indexOf(times.reduce((most, time) => Math.max(most, time)));
  // Of the others: of two replicas the middle one would be half the slow one.
  const others = times.filter((_, i) => i !== slowest);
  const factor = (times[slowest]! / medianOf(others)).toFixed(2);
  const whom = others.length === 1 ? "the other one" : "the middle one of the others";
  return `replica ${slowest} takes ${factor} times as long for a micro-batch as ${whom}`;
}
