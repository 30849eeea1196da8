/**
 * Slow-downs of a job out of many series. All ranks of a synchronous job show the same iteration times: what
 * most series show is the job's, and names nobody. Where each worker measures its own work, one that slows
 * down alone is the one to look at (Alibaba's mini-batch times are of that kind).
 */
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import type { ChangePoint, Episode, TrackedSeries } from "../../model/series.ts";

export interface SlowDown {
  /** The clearest of the series that show it. */
  readonly seenIn: TrackedSeries;
  readonly change: ChangePoint;
  readonly episode: Episode;
  /** Series that show it, of those that cover the time. */
  readonly shownBy: readonly TrackedSeries[];
  readonly covering: number;
  /** Ranks that slowed down while their peers did not; empty where the whole job did. */
  readonly alone: readonly Rank[];
}

/** Points a series needs before it has a say. */
const MIN_POINTS = 12;
/** Iterations by which the same change may be seen earlier or later. */
const SAME_CHANGE = 5;
/** A slow-down that at least this share of the covering series show is the job's, and one that the others show a little of. */
const MOST = 0.75;
const A_LITTLE = 0.25;
/** One that a few of many show, and only if it is plain: among hundreds of series one wanders by 10 % now and then. */
const FEW = 0.25;
const PLAIN_RATIO = 1.2;
const MIN_PEERS = 3;

interface Onset {
  readonly tracked: TrackedSeries;
  readonly change: ChangePoint;
  readonly episode: Episode;
}

export function slowDowns(all: readonly TrackedSeries[]): SlowDown[] {
  const usable = all.filter(({ series }) => series.iteration.length >= MIN_POINTS);
  return jobsOf(usable).flatMap(slowDownsOfJob);
}

function slowDownsOfJob(usable: readonly TrackedSeries[]): SlowDown[] {
  const onsets = usable.flatMap(onsetsOf).sort((a, b) => a.change.iteration - b.change.iteration);
  const found: SlowDown[] = [];
  for (let i = 0; i < onsets.length;) {
    let j = i + 1;
    while (j < onsets.length && together(onsets[j - 1]!, onsets[j]!)) j++;
    const one = merge(onsets.slice(i, j), usable);
    if (one) found.push(one);
    i = j;
  }
  return found;
}

/** A rank that two folders tell of, each in the same way, is a rank of two jobs: their series are no peers. */
function jobsOf(all: readonly TrackedSeries[]): TrackedSeries[][] {
  const folders = new Map<string, TrackedSeries[]>();
  const seen = new Map<string, string>();
  let areSeveral = false;
  for (const tracked of all) {
    const { file, rank, basis } = tracked.series;
    const folder = file.slice(0, file.lastIndexOf("/") + 1);
    folders.set(folder, [...(folders.get(folder) ?? []), tracked]);
    if (rank === null) continue;
    const key = `${rank}/${basis}`;
    if ((seen.get(key) ?? folder) !== folder) areSeveral = true;
    seen.set(key, folder);
  }
  return areSeveral ? [...folders.values()] : [[...all]];
}

/** Each degradation with the change that began it. */
function onsetsOf(tracked: TrackedSeries): Onset[] {
  return tracked.episodes.flatMap((episode) => {
    if (episode.type !== "degradation") return [];
    const change = tracked.changePoints.find(
      ({ iteration, direction }) => direction === "slower" && iteration === episode.from,
    );
    // A pause may stand at the change itself: then the episode begins a little later.
    const near =
      change ??
      tracked.changePoints.findLast(
        ({ iteration, direction }) => direction === "slower" && iteration <= episode.from,
      );
    return near ? [{ tracked, change: near, episode }] : [];
  });
}

function together(a: Onset, b: Onset): boolean {
  const stride = Math.max(strideOf(a.tracked), strideOf(b.tracked));
  return b.change.iteration - a.change.iteration <= SAME_CHANGE * stride;
}

function strideOf({ series, iterations }: TrackedSeries): number {
  return Math.max(1, iterations / Math.max(1, series.iteration.length));
}

/** null where a few series among many show no more than wandering. */
function merge(onsets: readonly Onset[], usable: readonly TrackedSeries[]): SlowDown | null {
  const best = onsets.reduce((a, b) => (b.change.confidence > a.change.confidence ? b : a));
  const seen = new Set(onsets.map(({ tracked }) => tracked));
  const covering = usable.filter(({ series }) => covers(series.iteration, best.change.iteration));
  // A short series (the ring of a recorder) may rise alike and be too short for the tracker to be sure.
  const enough = 1 + (best.change.ratio - 1) / 2;
  const shownBy = [
    ...seen,
    ...covering.filter((other) => !seen.has(other) && riseOf(other, best) >= enough),
  ];
  const others = covering.filter((other) => !shownBy.includes(other));
  const isWhole =
    covering.length < MIN_PEERS ||
    // Ranks that communicate share their iterations: who does not show it was recorded worse.
    (usable.some(({ series }) => series.basis === "operators") &&
      shownBy.length > FEW * covering.length) ||
    shownBy.length >= MOST * covering.length ||
    median(others.map((other) => riseOf(other, best))) >= 1 + A_LITTLE * (best.change.ratio - 1);
  const isFew = shownBy.length <= Math.max(1, FEW * covering.length);
  if (!isWhole && isFew && best.change.ratio < PLAIN_RATIO) return null;
  const ranks = shownBy.flatMap(({ series }) => (series.rank === null ? [] : [series.rank]));
  return {
    seenIn: best.tracked,
    change: best.change,
    episode: best.episode,
    shownBy,
    covering: covering.length,
    alone: isWhole ? [] : [...new Set(ranks)].sort((a, b) => a - b),
  };
}

/** How much longer a series is in the episode than before it. */
function riseOf({ series }: TrackedSeries, { change, episode }: Onset): number {
  const { iteration, durationMs } = series;
  const before = durationMs.filter((_, i) => iteration[i]! < change.iteration);
  const during = durationMs.filter(
    (_, i) => iteration[i]! >= change.iteration && iteration[i]! <= episode.to,
  );
  return median(during) / median(before);
}

function covers(iteration: Float64Array, at: number): boolean {
  return iteration.length > 0 && iteration[0]! <= at && iteration.at(-1)! >= at;
}
