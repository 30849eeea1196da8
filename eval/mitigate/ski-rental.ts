/** The rule of src/mitigate/ski-rental.ts, asked iteration by iteration. */
import { boundOf, worthwhileRemedies } from "../../src/mitigate/ski-rental.ts";
import type { Remedy, Strategy } from "../../src/model/mitigation.ts";

export interface SkiRental<R extends Remedy = Remedy> {
  /** In the order in which they may be taken; what is no better than something cheaper is left out. */
  readonly remedies: readonly R[];
  /** Times the loss of the best choice in hindsight, at most. */
  readonly bound: number;
  /** By strategy that was not taken yet: what it would have saved so far. */
  readonly saved: ReadonlyMap<Strategy, number>;
  /** An iteration was seen to take that long: the remedy to be taken now, or null. */
  observe(iterationMs: number): R | null;
}

/**
 * `slowMs`: an iteration as things are. `before`: what strategies would have saved already, where the fault is not new but
 * its diagnosis changed; otherwise a fault that changes often would never be paid for.
 */
export function skiRental<R extends Remedy>(
  remedies: readonly R[],
  slowMs: number,
  before: ReadonlyMap<Strategy, number> = new Map(),
): SkiRental<R> {
  const worthwhile = worthwhileRemedies(remedies, slowMs);
  const savedMs = Float64Array.from(worthwhile, ({ strategy }) => before.get(strategy) ?? 0);
  let next = 0;
  let expectedMs = slowMs;
  return {
    get saved() {
      // What is not on the list now may be again.
      const saved = new Map(before);
      worthwhile.forEach(({ strategy }, k) => {
        if (k < next) saved.delete(strategy);
        else saved.set(strategy, savedMs[k]!);
      });
      return saved;
    },
    remedies: worthwhile,
    bound: boundOf(worthwhile),
    observe(iterationMs) {
      let taken = -1;
      for (let k = next; k < worthwhile.length; k++) {
        const { strategy, iterationMs: withIt } = worthwhile[k]!;
        const lost = strategy === "S4" ? iterationMs : Math.min(iterationMs, expectedMs);
        savedMs[k]! += lost - withIt;
        if (savedMs[k]! >= worthwhile[k]!.overheadMs) taken = k;
      }
      if (taken < 0) return null;
      next = taken + 1;
      expectedMs = worthwhile[taken]!.iterationMs;
      return worthwhile[taken]!;
    },
  };
}
