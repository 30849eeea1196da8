/**
 * S2, who takes how many micro-batches (Greyhound §5.2, equation 1): minimise the time of the slowest replica,
 * max fixedᵢ + mᵢ · tᵢ, with Σ mᵢ = M and mᵢ ≥ 1. Greyhound hands a quadratic programme to a solver, which takes 36 s
 * for 512 replicas (Table 5) and minimises the variance, not quite the maximum. No solver is needed: handing out one
 * micro-batch after the other, each to the replica that would be done with it first, is exact. (Any allocation with a
 * smaller maximum than the greedy one would have to give every replica only micro-batches that end before the greedy
 * one's last, and the greedy one has handed out all of those.)
 *
 * Most of the handing out is skipped: micro-batches that end before a lower bound of the makespan are in every
 * allocation of the greedy, so it starts from there; fewer than one a replica are left.
 */
import { UserError } from "../base/errors.ts";
import type { MicroBatchPlan } from "../model/mitigation.ts";

export interface MicroBatchQuestion {
  /** By replica: time of one micro-batch on its slowest stage. Any unit. */
  readonly timesMs: ArrayLike<number>;
  /** Micro-batches of the global batch. */
  readonly total: number;
  /** By replica: what an iteration takes besides (filling the pipeline); 0 where absent. */
  readonly fixedMs?: ArrayLike<number>;
  /** Every replica takes a multiple of this: PP for an interleaved pipeline (§5.2, footnote 4). */
  readonly multipleOf?: number;
}

export function allocateMicroBatches(question: MicroBatchQuestion): MicroBatchPlan {
  const { total, multipleOf = 1 } = question;
  check(question);
  const replicas = question.timesMs.length;
  // In bundles of `multipleOf`, the problem is the same without the constraint.
  const times = Float64Array.from(question.timesMs, (time) => time * multipleOf);
  const fixed = Float64Array.from(times, (_, i) => question.fixedMs?.[i] ?? 0);
  const bundles = total / multipleOf;
  const levelMs = continuousLevel(times, fixed, bundles);
  const counts = handOut(times, fixed, bundles, levelMs);
  const allocation = Array.from(counts, (count) => count * multipleOf);
  let [makespan, boundMs] = [0, levelMs];
  for (let i = 0; i < replicas; i++) {
    makespan = Math.max(makespan, fixed[i]! + counts[i]! * times[i]!);
    boundMs = Math.max(boundMs, fixed[i]! + times[i]!);
  }
  return {
    allocation,
    makespan,
    lowerBound: Math.min(boundMs, makespan),
    weights: allocation.map((count) => (count * replicas) / total),
  };
}

/**
 * When everybody would be done if micro-batches could be cut, but for replicas whose single bundle takes longer: the
 * time λ at which Σ max(1, (λ − fixedᵢ) / tᵢ) = M. The sum is convex and piecewise linear in λ, so Newton's steps from
 * above (all replicas take part) fall onto it, a few steps for any number of replicas.
 */
function continuousLevel(times: Float64Array, fixed: Float64Array, bundles: number): number {
  let level = Infinity;
  for (;;) {
    let [rate, offset, single] = [0, 0, 0];
    for (let i = 0; i < times.length; i++) {
      if (fixed[i]! + times[i]! < level) {
        rate += 1 / times[i]!;
        offset += fixed[i]! / times[i]!;
      } else single++;
    }
    const next = (bundles - single + offset) / rate;
    if (rate === 0 || next >= level) return level;
    level = next;
  }
}

/** The greedy, from the allocation of all bundles that surely end by `levelMs`. */
function handOut(
  times: Float64Array,
  fixed: Float64Array,
  bundles: number,
  levelMs: number,
): Int32Array {
  const replicas = times.length;
  const counts = new Int32Array(replicas).fill(1);
  let left = bundles - replicas;
  // A hair below the level, so that rounding never hands out a bundle too many.
  const surelyMs = levelMs * (1 - 1e-9);
  for (let i = 0; i < replicas; i++) {
    const surely = Math.floor((surelyMs - fixed[i]!) / times[i]!) - 1;
    const more = Math.min(left, Math.max(0, surely));
    counts[i]! += more;
    left -= more;
  }
  const nextEnd = (i: number): number => fixed[i]! + (counts[i]! + 1) * times[i]!;
  const heap = makeHeap(Float64Array.from(counts, (_, i) => nextEnd(i)));
  for (; left > 0; left--) {
    const i = heap.first();
    counts[i]!++;
    heap.raiseFirst(nextEnd(i));
  }
  return counts;
}

/** A binary heap over the indices of `keys`, smallest first; equal keys by index, so that answers repeat. */
function makeHeap(keys: Float64Array): { first(): number; raiseFirst(key: number): void } {
  const size = keys.length;
  const heap = Uint32Array.from(keys, (_, i) => i);
  const before = (a: number, b: number): boolean =>
    keys[a]! < keys[b]! || (keys[a] === keys[b] && a < b);
  const sink = (start: number): void => {
    const item = heap[start]!;
    let at = start;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, item)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = item;
  };
  for (let i = (size >> 1) - 1; i >= 0; i--) sink(i);
  return {
    first: () => heap[0]!,
    raiseFirst(key) {
      keys[heap[0]!] = key;
      sink(0);
    },
  };
}

/** Counts are 32-bit numbers. */
const MOST = 1e9;

function check({ timesMs, total, fixedMs, multipleOf = 1 }: MicroBatchQuestion): void {
  const replicas = timesMs.length;
  if (replicas === 0) throw wrong("there is no replica", "give one time per replica");
  if (!Number.isSafeInteger(multipleOf) || multipleOf < 1)
    throw wrong(`a multiple of ${multipleOf} is not possible`, "give a whole number from 1");
  if (!Number.isSafeInteger(total) || total < 1 || total > MOST)
    throw wrong(
      `${total} is not a number of micro-batches`,
      `give the whole number of the global batch, at most ${MOST.toLocaleString("en")}`,
    );
  if (total % multipleOf !== 0)
    throw wrong(
      `${total} micro-batches cannot be distributed in multiples of ${multipleOf}`,
      `the nearest totals that can: ${nearest(total, multipleOf)}`,
    );
  if (total < replicas * multipleOf)
    throw wrong(
      `${total} micro-batches are too few for ${replicas} replicas of at least ${multipleOf}`,
      `give at least ${replicas * multipleOf}`,
    );
  if (fixedMs !== undefined && fixedMs.length !== replicas)
    throw wrong(
      `${fixedMs.length} fixed times for ${replicas} replicas`,
      "give one per replica, or none",
    );
  for (let i = 0; i < replicas; i++) {
    const time = timesMs[i]!;
    if (!(time > 0 && time * total < Infinity))
      throw wrong(
        `the time of replica ${i} is ${time}`,
        "times of a micro-batch are greater than zero",
      );
    const fixed = fixedMs?.[i] ?? 0;
    if (!(fixed >= 0 && fixed < Infinity))
      throw wrong(`the fixed time of replica ${i} is ${fixed}`, "fixed times are zero or greater");
  }
}

function nearest(total: number, multipleOf: number): string {
  const below = Math.floor(total / multipleOf) * multipleOf;
  return below > 0 ? `${below} and ${below + multipleOf}` : String(multipleOf);
}

function wrong(message: string, hint: string): UserError {
  return new UserError(message, hint, 2);
}
