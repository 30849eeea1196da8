/** Which iterations of the job were slow, and which were as they should be, as the tracker saw them. */
import type { Job } from "../../model/job.ts";
import type { Episode, TrackedSeries } from "../../model/series.ts";

export interface SlowWindow {
  readonly from: number;
  readonly to: number;
  /** How much longer an iteration takes in it, milliseconds. */
  readonly extraMs: number;
  readonly usualMs: number;
  /** Whether an iteration is to be compared with: neither slow nor a pause. */
  isUsual(iteration: number): boolean;
}

/** The worst stretch that any series shows; null where all are even. Single spikes are nobody's habit. */
export function slowWindow(job: Job): SlowWindow | null {
  let worst: { tracked: TrackedSeries; episode: Episode } | null = null;
  for (const tracked of job.iterations) {
    for (const episode of tracked.episodes) {
      if (episode.type === "spike" || episode.iterations < LEAST_ITERATIONS) continue;
      if (!worst || episode.wastedMs > worst.episode.wastedMs) worst = { tracked, episode };
    }
  }
  if (!worst) return null;
  const { tracked, episode } = worst;
  const usualMs = tracked.medianMs;
  const before = tracked.changePoints.find(
    ({ direction, iteration }) => direction === "slower" && iteration <= episode.to,
  );
  const level = before?.beforeMs ?? usualMs;
  const pauses = new Set(tracked.pauses.map(({ iteration }) => iteration));
  return {
    from: episode.from,
    to: episode.isOpen ? Infinity : episode.to,
    extraMs: level * (episode.ratio - 1),
    usualMs: level,
    isUsual: (iteration) =>
      !pauses.has(iteration) &&
      tracked.episodes.every(
        ({ from, to, isOpen }) => iteration < from || (!isOpen && iteration > to),
      ),
  };
}

const LEAST_ITERATIONS = 3;
