/**
 * Whether the iterations of a whole job take longer than before, since when, and whether they are back: by the tracker of
 * iteration times (Greyhound §4.1, Holmes §3). Who is slow the judge tells (methods/slow/online). The pace decides where nothing
 * is judged: agents without rings, or older ones (docs/incidents.md, rule 12).
 */
import { median } from "../../../maths/robust.ts";
import type { JobIteration } from "../job/job-iterations.ts";

/** A stretch of iterations that take longer. */
export interface Slowdown {
  /** Whether iterations that have ended since tell the pace: the judge may be faster than they are. */
  readonly isPaced: boolean;
  readonly slowFrom: number;
  /** When its first iteration began, milliseconds since 1970. */
  readonly fromMs: number;
  /** What an iteration took before, and takes since. */
  readonly beforeMs: number;
  readonly afterMs: number;
  /** Where iterations are slow now and then: how many, of how many. Absent where all are. */
  readonly intermittent?: { readonly slow: number; readonly of: number };
}

/** A change of the level by less costs a job too little. */
export const LEAST_RISE = 1.05;
/** Told once it has lasted so long: of a job with iterations of 90 ms, all of eight healthy ranks were slow together for two seconds in ten minutes. */
const LASTS_MS = 3000;
const LASTS_ITERATIONS = 6;
/** Back: the middle of so many is nearer to before than to since, by this share of the way; so much of before at least, and at most. */
const BACK_ITERATIONS = 4;
const BACK_SHARE = 0.3;
const LEAST_BACK = 0.03;
const MOST_BACK = 0.1;
/** Where the judge takes a longer pace for healthy for so long, that is the job's usual pace from then on. */
const ACCEPTED_MS = 60_000;

export class PaceWatch {
  #slowdown: Slowdown | null = null;
  #isTold = false;
  readonly #lastMs: number[] = [];

  /** Also one that is not told yet. */
  get slowdown(): Slowdown | null {
    return this.#slowdown;
  }

  /** After a restart of the service, an incident that was open goes on. */
  resume(slowdown: Slowdown): void {
    this.#slowdown = slowdown;
    this.#isTold = true;
  }

  /** The numbers of iterations went back: what lasts goes on from here. */
  rebase(): void {
    this.#lastMs.length = 0;
    if (this.#slowdown) this.#slowdown = { ...this.#slowdown, slowFrom: -1 };
  }

  /** Nobody is slow, says the judge: after a while this is how long iterations take. */
  accept(nowMs: number): void {
    if (this.#slowdown && nowMs - this.#slowdown.fromMs > ACCEPTED_MS) this.#slowdown = null;
  }

  push(one: JobIteration): "slower" | "back" | null {
    const { iteration, durationMs, endMs, shift } = one;
    this.#lastMs.push(durationMs);
    if (this.#lastMs.length > BACK_ITERATIONS) this.#lastMs.shift();
    const known = this.#slowdown;
    if (shift && shift.afterMs > LEAST_RISE * shift.beforeMs) {
      const { fromIteration: slowFrom, fromMs, beforeMs, afterMs } = shift;
      // Slower once more: healthy is what it was before the first time.
      const first = { isPaced: true, slowFrom, fromMs, beforeMs, afterMs };
      this.#slowdown = known ? { ...known, afterMs } : first;
      if (!known) this.#isTold = false;
    }
    const slowdown = this.#slowdown;
    if (!slowdown) return null;
    const count = iteration - slowdown.slowFrom + 1;
    const isWhole = this.#lastMs.length === BACK_ITERATIONS && count > BACK_ITERATIONS;
    if (isWhole && median(this.#lastMs) < backMs(slowdown)) {
      this.#slowdown = null;
      return this.#isTold ? "back" : null;
    }
    if (this.#isTold || count < LASTS_ITERATIONS || endMs - slowdown.fromMs < LASTS_MS) return null;
    this.#isTold = true;
    return "slower";
  }
}

/** Iterations that take less are as before. */
export function backMs({ beforeMs, afterMs }: Pick<Slowdown, "beforeMs" | "afterMs">): number {
  const way = Math.min(MOST_BACK * beforeMs, BACK_SHARE * (afterMs - beforeMs));
  return beforeMs + Math.max(LEAST_BACK * beforeMs, way);
}
