/**
 * When the micro-batches of a running job are shared out anew (Greyhound §5.2, S2). Times come in after each iteration;
 * the exact optimum for them is at hand at any time, so the question is only whether it is worth believing.
 *
 * By the ski-rental rule (Algorithm 1) a strategy is applied once the loss has reached its cost, and S2 costs next to
 * nothing: the answer would be "at once". What holds it back is noise. The best allocation for times that were measured
 * always looks better than the one in force, for it fits their noise, too. So a candidate has to prove itself on
 * iterations that it was not made from: on those, what fits noise only comes out worse than it was before.
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
  /** A better allocation that is being watched, and for how many of the iterations it takes. */
  readonly candidate: {
    readonly counts: readonly number[];
    readonly watched: number;
    readonly needed: number;
  } | null;
  /** Why nothing can be learnt at the moment; null where all is well. */
  readonly remark: string | null;
}

export interface AllocationFollower {
  /** The change that the report leads to; null where the allocation stays. */
  report(report: IterationReport): AllocationChange | null;
  state(): AllocationState;
}

/** Times are medians over so many iterations: two wild ones do not move them. */
const WINDOW = 5;
/** Iterations on which a candidate proves itself. */
const PROOF = 4;
/** A fault and its end are two changes. More than that within so many iterations is a fault that comes and goes … */
const LATE_ITERATIONS = 100;
const FREE_CHANGES = 2;
/** … and each makes the next proof twice as long, up to this: chasing it would always come too late. */
const LONGEST_PROOF = 64;

/** What can be the time of an iteration; anything else would only lead arithmetic astray. */
const LEAST_S = 1e-9;
const MOST_S = 1e9;

interface Candidate {
  readonly counts: readonly number[];
  /** Times of the iterations since it was proposed. */
  readonly since: Float64Array[];
  readonly needed: number;
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
  let changedAt: number[] = [];

  const proofLength = (iteration: number): number => {
    changedAt = changedAt.filter((at) => iteration - at <= LATE_ITERATIONS);
    return Math.min(LONGEST_PROOF, PROOF * 2 ** Math.max(0, changedAt.length - FREE_CHANGES + 1));
  };

  /** Towards even shares anything helps, for uneven ones there has to be a reason. */
  const isWorthIt = (counts: readonly number[], { times, margin }: Estimate): boolean => {
    const gain = 1 - span(counts, times, shape) / span(current, times, shape);
    return counts === even ? gain > 0 : gain >= margin;
  };

  const propose = (iteration: number): void => {
    const estimate = estimateTimes(rows);
    const { times, margin } = estimate;
    const best = allocateMicroBatches({
      timesMs: times,
      fixedMs: times.map((time) => shape.bubble * time),
      total: shape.total,
      multipleOf: shape.multipleOf,
    });
    const evenIsGood = span(even, times, shape) * (1 - margin) <= best.makespan;
    const counts = evenIsGood ? even : best.allocation;
    if (!isWorthIt(counts, estimate)) return;
    candidate = { counts, since: [], needed: proofLength(iteration) };
  };

  const adopt = (counts: readonly number[], estimate: Estimate): AllocationChange => {
    const { times } = estimate;
    const change = {
      iteration: lastIteration!,
      before: current,
      counts,
      beforeS: span(current, times, shape),
      afterS: span(counts, times, shape),
      why: reasonOf(times, counts === even),
    };
    current = counts;
    changedAt.push(change.iteration);
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
      const times = Float64Array.from(seconds, (s, i) => s! / (counts[i]! + shape.bubble));
      rows = [...rows.slice(1 - WINDOW), times];
      if (candidate === null) {
        if (rows.length === WINDOW) propose(iteration);
        return null;
      }
      candidate.since.push(times);
      if (candidate.since.length < candidate.needed) return null;
      const { counts: proven, since } = candidate;
      candidate = null;
      const estimate = estimateTimes(since);
      return isWorthIt(proven, estimate) ? adopt(proven, estimate) : null;
    },
    state: () => ({
      counts: current,
      weights: weightsOf(current, shape),
      lastIteration,
      reportedCounts,
      secondsPerMicroBatch: rows.length === 0 ? null : [...middle(rows)],
      candidate:
        candidate === null
          ? null
          : {
              counts: candidate.counts,
              watched: candidate.since.length,
              needed: candidate.needed,
            },
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
