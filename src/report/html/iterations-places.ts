/**
 * Where in the series the tracker's iterations stand. It names iterations as the log prints them, and a log
 * that goes back after a restart prints the same number twice: then what is said of the stretch (its ratio,
 * its length, its duration) must fit the points.
 */
import type { ChangePoint, Episode, IterationSeries, TrackedSeries } from "../../model/series.ts";

/** Indices of points; null where no point fits. */
interface Places {
  readonly changes: readonly (number | null)[];
  /** First and last point of each episode. */
  readonly episodes: readonly (readonly [number, number] | null)[];
  readonly pauses: readonly (number | null)[];
  /** Points before which the job was started again, ascending. */
  readonly restarts: readonly number[];
}

/** Stretches of rising numbers that are searched; more are garbage, not restarts. */
const MAX_RUNS = 512;
/** How many restarts an episode may outlive. */
const MAX_OUTLIVED = 4;
/** Points on each side of a change that tell its levels. */
const AROUND = 5;

export function placeAll(tracked: TrackedSeries): Places {
  const { series, changePoints, pauses } = tracked;
  const lookup = new Lookup(series.iteration);
  let last = -1;
  const changes = changePoints.map((change) => {
    const at = lookup.all(change.iteration).filter((i) => i > last);
    const best = leastOf(at, (i) => changeMisfit(series, change, i));
    if (best !== null) last = best;
    return best;
  });
  let before = -1;
  const paused = pauses.map(({ iteration, durationMs }) => {
    const at = lookup.all(iteration).filter((i) => i > before);
    const best = at.find((i) => Object.is(series.durationMs[i], durationMs)) ?? at[0] ?? null;
    if (best !== null) before = best;
    return best;
  });
  const episodes = placeEpisodes(tracked, lookup);
  return { changes, episodes, pauses: paused, restarts: placeRestarts(tracked, lookup) };
}

/** Finds the points that print a number, run by run of rising numbers. */
class Lookup {
  readonly #iteration: Float64Array;
  /** First point of each run, and the length of the series. */
  readonly #starts: number[] = [];

  constructor(iteration: Float64Array) {
    this.#iteration = iteration;
    for (let i = 0; i < iteration.length && this.#starts.length <= MAX_RUNS; i++) {
      if (i === 0 || !(iteration[i]! > iteration[i - 1]!)) this.#starts.push(i);
    }
    if (this.#starts.length <= MAX_RUNS) this.#starts.push(iteration.length);
  }

  all(iteration: number): number[] {
    const found: number[] = [];
    for (let r = 0; r + 1 < this.#starts.length; r++) {
      let low = this.#starts[r]!;
      let high = this.#starts[r + 1]! - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.#iteration[middle]! < iteration) low = middle + 1;
        else high = middle;
      }
      if (this.#iteration[low] === iteration) found.push(low);
    }
    return found;
  }
}

function changeMisfit(series: IterationSeries, change: ChangePoint, at: number): number {
  if (change.line > 0 && series.line[at] === change.line) return -1;
  const before = middleOf(series.durationMs.subarray(Math.max(0, at - AROUND), at));
  const after = middleOf(series.durationMs.subarray(at, at + AROUND));
  return misfit(before, change.beforeMs) + misfit(after, change.afterMs);
}

function middleOf(values: Float64Array): number {
  const sorted = values.filter((value) => value > 0).toSorted();
  return sorted[sorted.length >> 1] ?? NaN;
}

/** How far apart two sizes are; finite, whatever they are. */
function misfit(a: number, b: number): number {
  const apart = Math.abs(Math.log(a / b));
  return apart < 10 ? apart : 10;
}

/** The first of the least; null where there is none. */
function leastOf<T>(items: readonly T[], cost: (item: T) => number): T | null {
  if (items.length < 2) return items[0] ?? null;
  let best: T | null = null;
  let least = Infinity;
  for (const item of items) {
    const now = cost(item);
    if (now < least) [best, least] = [item, now];
  }
  return best;
}

function placeEpisodes(
  { series, levelMs, episodes, iterations }: TrackedSeries,
  lookup: Lookup,
): Places["episodes"] {
  const points = series.iteration.length;
  const stride = iterations / points;
  const counted = new Float64Array(points + 1);
  const took = new Float64Array(points + 1);
  const should = new Float64Array(points + 1);
  for (let i = 0; i < points; i++) {
    const counts = series.durationMs[i]! > 0 && levelMs[i]! > 0;
    counted[i + 1] = counted[i]! + (counts ? 1 : 0);
    took[i + 1] = took[i]! + (counts ? series.durationMs[i]! : 0);
    should[i + 1] = should[i]! + (counts ? levelMs[i]! : 0);
  }
  const cost = (episode: Episode, [a, b]: readonly [number, number]): number => {
    const ratio = (took[b + 1]! - took[a]!) / (should[b + 1]! - should[a]!);
    const length = (counted[b + 1]! - counted[a]!) * stride;
    // Of a fluctuation only the irregular iterations are counted, not the calm ones between them.
    const ofLength = episode.type === "fluctuation" ? 0 : misfit(length, episode.iterations);
    return misfit(ratio, episode.ratio) + ofLength;
  };
  return episodes.map((episode) => {
    const ends = lookup.all(episode.to);
    const pairs = lookup.all(episode.from).flatMap((a) =>
      ends
        .filter((b) => b >= a)
        .slice(0, MAX_OUTLIVED)
        .map((b): readonly [number, number] => [a, b]),
    );
    return leastOf(pairs, (pair) => cost(episode, pair));
  });
}

/** Where the counter goes back, and where the tracker says so. */
function placeRestarts({ series, restarts }: TrackedSeries, lookup: Lookup): number[] {
  const { iteration } = series;
  const found = new Set<number>();
  for (let i = 1; i < iteration.length; i++) if (iteration[i]! < iteration[i - 1]!) found.add(i);
  let last = 0;
  for (const restart of restarts) {
    const at = lookup.all(restart).filter((i) => i > last);
    const index = at.find((i) => found.has(i)) ?? at[0];
    if (index === undefined) continue;
    found.add(index);
    last = index;
  }
  return [...found].sort((a, b) => a - b);
}
