/** The last iterations of each job, for the small curves: asked for once, then followed. */
import { ask, type Iterations, type JobView, paths } from "../live/api.ts";
import { jobs, newIterations, snapshots } from "../live/store.ts";

/** Points of a curve. */
export const MOST_RECENT = 90;
const MOST_JOBS = 1000;

interface Recent {
  run: string;
  durations: readonly number[];
}

const recent = new Map<string, Recent>();
const listeners = new Map<string, Set<() => void>>();
let asking: Promise<unknown> = Promise.resolve();

newIterations.watch((fresh) => {
  if (!fresh) return;
  const had = recent.get(fresh.job);
  // A new run begins a new curve.
  const before = had && had.run !== fresh.run && had.run !== "" ? [] : (had?.durations ?? []);
  put(fresh.job, fresh.run, [...before, ...fresh.rows.durationMs]);
});

export function recentDurations(job: string): readonly number[] {
  return recent.get(job)?.durations ?? [];
}

/** Asks for what was before; one job after the other, for a fleet has many. Returns how to stop. */
export function watchRecent(job: string, listener: () => void): () => void {
  const own = listeners.get(job) ?? new Set();
  listeners.set(job, own.add(listener));
  const load = (): void => {
    asking = asking.then(async () => {
      if (!own.has(listener)) return;
      try {
        const view = jobs.value?.find((one) => one.job === job);
        const { durationMs } = await ask<Iterations>(
          paths.iterations(job, 2 * MOST_RECENT, view ? { fromMs: recentFromMs(view) } : {}),
        );
        put(job, recent.get(job)?.run ?? "", durationMs);
      } catch {
        // The curve begins with what comes.
      }
    });
  };
  load();
  const stop = snapshots.watch(load);
  return () => {
    stop();
    own.delete(listener);
    if (own.size === 0) listeners.delete(job);
  };
}

/** The whole run would come thinned out: only so far back as the curve goes, with some to spare. */
function recentFromMs({ seenMs, levelMs, baselineMs }: JobView): number {
  const paceMs = levelMs ?? baselineMs ?? 60_000;
  return Math.max(0, seenMs - 1.5 * MOST_RECENT * paceMs);
}

function put(job: string, run: string, durations: readonly number[]): void {
  recent.delete(job);
  recent.set(job, { run, durations: durations.slice(-MOST_RECENT) });
  for (const oldest of recent.keys()) {
    if (recent.size <= MOST_JOBS) break;
    recent.delete(oldest);
  }
  for (const listener of listeners.get(job) ?? []) listener();
}
