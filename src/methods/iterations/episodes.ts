/**
 * Kinds of irregularity (Holmes §3.1): an iteration is δ-irregular when it takes δ times as long as it should.
 * Irregular iterations between a slow-down and its relief are a persistent degradation; many small ones that
 * keep coming back, often with a period, a performance fluctuation; the rest are abnormal spikes.
 */
import { dominantPeriod } from "../../maths/dominant-period.ts";
import { median, TO_DEVIATION } from "../../maths/robust.ts";
import type { Episode, IterationSeries, TrackedSeries } from "../../model/series.ts";
import { judged } from "./normal.ts";
import type { Segment } from "./track-series.ts";

/** Holmes' default δ, and the one it uses for fluctuations (§3.1.2). */
const DELTA = 1.1;
const DELTA_SMALL = 1.05;
/** What a job's own noise reaches now and then is not irregular. */
const NOISE_SIGMAS = 4;
/** A fluctuation: irregular iterations at least this often, and this many; spikes are rarer (39 in 1,000). */
const FREQUENT = 0.08;
const MIN_FLUCTUATIONS = 8;
/** With a period, fewer suffice. */
const MIN_PERIODIC = 6;
const CHANCE = 0.001;
/** Irregular iterations further apart than this many usual gaps do not belong together. */
const APART = 4;
/** Points of the window that an iteration is compared with. */
const WINDOW = 96;

interface Irregularities {
  readonly episodes: readonly Episode[];
  readonly irregular: number;
  readonly wastedMs: number;
  readonly levelMs: Float64Array;
}

export function findEpisodes(
  series: IterationSeries,
  counted: readonly number[],
  segments: readonly Segment[],
  strides: readonly number[],
): Irregularities {
  const levelMs = new Float64Array(series.iteration.length).fill(NaN);
  const episodes: Episode[] = [];
  const last = counted.at(-1) ?? -1;
  let slow: number[] = [];
  let wasSlow = false;
  const close = (): void => {
    if (slow.length > 0)
      episodes.push(episode(series, slow, levelMs, strides, "degradation", slow.at(-1) === last));
    slow = [];
  };
  for (const { segment, isSlow, normalMs } of judged(segments)) {
    const { points, noise, isNew } = segment;
    if (isNew) close();
    if (isNew) wasSlow = false;
    if (points.length === 0) continue;
    if (!isSlow) close();
    if (isSlow) {
      for (const i of points) {
        levelMs[i] = normalMs;
        slow.push(i);
      }
    } else {
      localLevel(series.durationMs, points, levelMs);
      episodes.push(...shortEpisodes(series, points, levelMs, noise, strides, wasSlow));
    }
    wasSlow = isSlow;
  }
  close();
  episodes.sort((a, b) => a.from - b.from);
  return {
    episodes,
    irregular: episodes.reduce((sum, { iterations }) => sum + iterations, 0),
    wastedMs: episodes.reduce((sum, { wastedMs }) => sum + wastedMs, 0),
    levelMs,
  };
}

/** Of a fluctuation, so much of its usual excess makes an iteration one of its slow ones. */
const OF_USUAL = 0.5;

/** Numbers of the iterations that spikes and fluctuations made slow, ascending: any set, not a stretch. */
export function irregularIterations({ series, episodes, levelMs }: TrackedSeries): number[] {
  const short = episodes.filter(({ type }) => type !== "degradation");
  return [...series.iteration].filter((number, i) =>
    short.some(({ from, to, ratio }) => {
      const least = (1 + OF_USUAL * (ratio - 1)) * levelMs[i]!;
      return number >= from && number <= to && series.durationMs[i]! >= least;
    }),
  );
}

/**
 * Median of the points around each point: Holmes compares with the average in a window, so that a slow drift
 * of the whole is not irregular. Computed at every eighth point.
 */
function localLevel(
  durationMs: Float64Array,
  points: readonly number[],
  levelMs: Float64Array,
): void {
  let level = NaN;
  for (const [k, i] of points.entries()) {
    if (k % 8 === 0) {
      const from = Math.max(0, Math.min(k - WINDOW / 2, points.length - WINDOW));
      level = median(points.slice(from, from + WINDOW).map((j) => durationMs[j]!));
    }
    levelMs[i] = level;
  }
}

/** Spikes and fluctuations within a level. */
function shortEpisodes(
  series: IterationSeries,
  points: readonly number[],
  levelMs: Float64Array,
  noise: number,
  strides: readonly number[],
  afterSlow: boolean,
): Episode[] {
  const { durationMs } = series;
  const over = (i: number): number => durationMs[i]! / levelMs[i]!;
  const quiet = Math.min(noise, noiseBelow(points, over));
  const small = Math.max(DELTA_SMALL, Math.exp(NOISE_SIGMAS * quiet));
  const large = Math.max(DELTA, Math.exp(NOISE_SIGMAS * quiet));
  // A relief may take a few iterations: its tail is no spike.
  let first = 0;
  while (afterSlow && first < points.length && over(points[first]!) > large) first++;
  const found: Episode[] = [];
  for (const cluster of clusters(points.slice(first), (i) => over(i) > small)) {
    const irregular = cluster.filter((i) => over(i) > small);
    const rhythm = fluctuates(cluster, irregular.length, (i) => over(i) > small);
    if (rhythm) {
      const whole = episode(series, irregular, levelMs, strides, "fluctuation", false);
      found.push({ ...whole, period: rhythm.period });
      continue;
    }
    for (const run of runs(cluster, (i) => over(i) > large))
      found.push(episode(series, run, levelMs, strides, "spike", false));
  }
  return found;
}

/** Noise as the faster half tells it: what only ever adds time does not count as noise. */
function noiseBelow(points: readonly number[], over: (i: number) => number): number {
  const below = points.map((i) => -Math.log(over(i))).filter((y) => y >= 0);
  return TO_DEVIATION * median(below);
}

/** Stretches of points from an irregular one to another with no long rest between them. */
function clusters(points: readonly number[], isIrregular: (i: number) => boolean): number[][] {
  const at = points.flatMap((i, k) => (isIrregular(i) ? [k] : []));
  const gaps = at.slice(1).map((k, n) => k - at[n]!);
  const reach = Math.max(30, APART * (median(gaps) || 1));
  const found: number[][] = [];
  let first = 0;
  for (let n = 0; n < at.length; n++) {
    if (n + 1 < at.length && at[n + 1]! - at[n]! <= reach) continue;
    found.push(points.slice(at[first], at[n]! + 1));
    first = n + 1;
  }
  return found;
}

function fluctuates(
  cluster: readonly number[],
  irregular: number,
  isIrregular: (i: number) => boolean,
): { period: number | null } | null {
  if (irregular < MIN_PERIODIC) return null;
  // Presence, not size: one giant among them would drown the rhythm of the others.
  const beat = dominantPeriod(cluster.map((i) => (isIrregular(i) ? 1 : 0)));
  const isPeriodic = beat !== null && beat.chance < CHANCE && beat.period <= cluster.length / 3;
  const isFrequent = irregular >= MIN_FLUCTUATIONS && irregular >= FREQUENT * cluster.length;
  if (!isPeriodic && !isFrequent) return null;
  return { period: isPeriodic ? Math.round(beat.period * 100) / 100 : null };
}

function runs(points: readonly number[], isIrregular: (i: number) => boolean): number[][] {
  const found: number[][] = [];
  let open: number[] = [];
  for (const i of points) {
    if (isIrregular(i)) open.push(i);
    else if (open.length > 0) {
      found.push(open);
      open = [];
    }
  }
  if (open.length > 0) found.push(open);
  return found;
}

function episode(
  { iteration, durationMs }: IterationSeries,
  points: readonly number[],
  levelMs: Float64Array,
  strides: readonly number[],
  type: Episode["type"],
  isOpen: boolean,
): Episode {
  let wastedMs = 0;
  let took = 0;
  let should = 0;
  let iterations = 0;
  for (const i of points) {
    wastedMs += Math.max(0, durationMs[i]! - levelMs[i]!) * strides[i]!;
    took += durationMs[i]! * strides[i]!;
    should += levelMs[i]! * strides[i]!;
    iterations += strides[i]!;
  }
  return {
    from: iteration[points[0]!]!,
    to: iteration[points.at(-1)!]!,
    ratio: took / should,
    type,
    iterations,
    wastedMs,
    period: null,
    isOpen,
  };
}
