/**
 * When to do what about a fault that nobody knows the end of (Greyhound §5.1, Algorithm 1): as with renting or buying
 * skis, a remedy is taken when what it would have saved so far equals what it costs.
 *
 * Greyhound counts the whole slow-down as saved and takes the remedies one by one in the order of their overheads. We
 * count what each remedy would really have saved (the time seen minus the time expected with it), and leave out what is
 * passed by. With remedies of overhead c₁ < c₂ < … and iterations that lose r₀ > r₁ > … a unit of time, the time lost
 * by waiting then equals min over k of (c_k + r_k · T) at every T: what the best single choice in hindsight loses in
 * all. Only the overheads come on top: those of the remedies taken, of which the last is at most that minimum. So no
 * fault, however long, loses more than
 *
 *     bound = 1 + max over k of (c₁ + … + c_k) / c_k
 *
 * times what the best choice in hindsight loses, doing nothing included: a little more than 2 where overheads lie far
 * apart. That supposes that remedies do what was expected of them. What goes beyond the known faults, S2 and S3 would not
 * have saved, so they are not credited with it; a restart ends every fault (§5.1), so it is.
 */
import type { Remedy } from "../model/mitigation.ts";

/** A remedy must save so much of an iteration to be worth a thought. */
const LEAST_GAIN = 0.01;

/** In the order in which they may be taken; what is no better than something cheaper is left out. */
export function worthwhileRemedies<R extends Remedy>(remedies: readonly R[], slowMs: number): R[] {
  const kept: R[] = [];
  let bestMs = slowMs;
  const byOverhead = [...remedies].sort(
    (a, b) => a.overheadMs - b.overheadMs || a.iterationMs - b.iterationMs,
  );
  for (const remedy of byOverhead) {
    if (remedy.iterationMs > bestMs - LEAST_GAIN * slowMs) continue;
    kept.push(remedy);
    bestMs = remedy.iterationMs;
  }
  return kept;
}

/** Times the loss of the best choice in hindsight, at most. */
export function boundOf(remedies: readonly Remedy[]): number {
  let [sum, worst] = [0, 0];
  for (const { overheadMs } of remedies) {
    sum += overheadMs;
    if (overheadMs > 0) worst = Math.max(worst, sum / overheadMs);
  }
  return 1 + worst;
}

/** After how many iterations as slow as now each remedy comes due, if the ones before it do what they promise. */
export function dueAfter(remedies: readonly Remedy[], slowMs: number): number[] {
  const worthwhile = worthwhileRemedies(remedies, slowMs);
  const due = new Map<Remedy, number>();
  let seenMs = slowMs;
  // Long jumps instead of iterations: a restart may come due after millions of them.
  let iterations = 0;
  const savedMs = worthwhile.map(() => 0);
  let next = 0;
  while (next < worthwhile.length) {
    let [first, wait] = [-1, Infinity];
    for (let k = next; k < worthwhile.length; k++) {
      const { overheadMs, iterationMs } = worthwhile[k]!;
      const gain = seenMs - iterationMs;
      const left = Math.max(1, Math.ceil((overheadMs - savedMs[k]!) / gain));
      // Of two that come due together, the stronger.
      if (left <= wait) [first, wait] = [k, left];
    }
    iterations += wait;
    for (let k = next; k < worthwhile.length; k++)
      savedMs[k]! += wait * (seenMs - worthwhile[k]!.iterationMs);
    due.set(worthwhile[first]!, iterations);
    seenMs = worthwhile[first]!.iterationMs;
    next = first + 1;
  }
  return remedies.map((remedy) => due.get(remedy) ?? Infinity);
}
