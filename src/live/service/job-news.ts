/** Tells how jobs are, to whoever listens: of each about once a second while something changes, and not otherwise. */
import type { JobView } from "./view.ts";

const EVERY_MS = 1000;
/** That a job was heard of again is news now and then only. */
const HEARD_MS = 5000;

interface Told {
  readonly atMs: number;
  readonly seenMs: number;
  /** All the rest. */
  readonly text: string;
}

export class JobUpdateThrottle {
  readonly #told = new Map<string, Told>();

  /** Whether it is time to look at the job at all. */
  isDue(job: string, nowMs: number): boolean {
    const told = this.#told.get(job);
    // A clock that is set back must not silence anybody.
    return !told || nowMs - told.atMs >= EVERY_MS || nowMs < told.atMs;
  }

  /** Whether there is something to tell. */
  isNews(view: JobView, nowMs: number): boolean {
    const { seenMs, ...rest } = view;
    const text = JSON.stringify(rest);
    const told = this.#told.get(view.job);
    if (told?.text === text && seenMs - told.seenMs < HEARD_MS) {
      this.#told.set(view.job, { ...told, atMs: nowMs });
      return false;
    }
    this.#told.set(view.job, { atMs: nowMs, seenMs, text });
    return true;
  }

  /** Jobs that are looked after no more. */
  keep(isHeld: (job: string) => boolean): void {
    for (const job of this.#told.keys()) if (!isHeld(job)) this.#told.delete(job);
  }
}
