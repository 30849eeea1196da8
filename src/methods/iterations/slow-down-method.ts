/** The question "when did it become slow?" asked of a job: what the tracker saw, as findings. */
import { count, rankWords } from "../../base/text.ts";
import type { NewFinding } from "../../model/finding.ts";
import { hasStopped, LAST_ITERATIONS } from "../../model/has-stopped.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import { median } from "../../maths/robust.ts";
import type { ChangePoint, IterationSeries, TrackedSeries } from "../../model/series.ts";
import { slowDowns, type SlowDown } from "./slow-downs.ts";

const MAX_FINDINGS = 8;
const HOUR_MS = 3_600_000;
/** One rank that slows down while its peers do not: what slows it is not known from times alone. */
const ALONE_WEIGHT = 0.6;

/** Part of the recorded time below which a slow-down that is over is no longer what is wrong, and what is left of its weight. */
const SMALL_PART = 0.05;
const PASSED = 0.25;

export const slowDown: Method = {
  id: "iterations/slow-down",
  applies: (job) => job.iterations.length > 0,
  *run(job) {
    const stopped = hasStopped(job);
    const found = slowDowns(job.iterations);
    const all = stopped
      ? found.filter(({ seenIn, episode }) => !isPassing(seenIn, episode))
      : found;
    // The one that wastes most first: the verdict tells of it.
    const worst = all.toSorted((a, b) => b.episode.wastedMs - a.episode.wastedMs);
    for (const one of worst.slice(0, MAX_FINDINGS)) yield findingOf(one, stopped);
    if (found.every(({ seenIn, episode }) => isPassing(seenIn, episode)))
      yield* evenOnes(job, stopped);
    yield* irregularOnes(job, stopped);
  },
};

function findingOf(
  { seenIn, change, episode, shownBy, covering, alone }: SlowDown,
  stopped: boolean,
): NewFinding {
  const { series } = seenIn;
  const isNow = episode.isOpen && !stopped;
  const isOver = !episode.isOpen && (stopped || isPassing(seenIn, episode));
  const until = episode.isOpen ? UNTIL_STOP : `until iteration ${episode.to}`;
  const ends = isNow ? "and still do at the end" : until;
  const who = alone.length > 0 ? `iterations of ${rankWords(alone)} alone` : "iterations";
  const shown = covering > 1 ? `; ${shownBy.length} of ${covering} series show it` : "";
  return {
    says: `${who} ${slowerSince(change, isNow)} (${inUnit(change.beforeMs, series)} → ${inUnit(change.afterMs, series)}) ${ends}${shown}`,
    weight: change.confidence * (isOver ? PASSED : 1),
    at: shownBy
      .slice(0, 4)
      .map(({ series: { file } }) =>
        file === series.file ? { file, line: change.line } : { file },
      ),
    data: {
      fact: "slow-down",
      slowDown: true,
      iteration: change.iteration,
      until: episode.isOpen ? null : episode.to,
      detectedAt: change.detectedAt,
      beforeMs: round(change.beforeMs),
      afterMs: round(change.afterMs),
      ratio: round(change.ratio),
      ramp: change.ramp && {
        until: change.ramp.until,
        msPerIteration: round(change.ramp.msPerIteration),
      },
      wastedHours: series.isRelative ? null : round(episode.wastedMs / HOUR_MS),
      from: change.atMs === null ? null : new Date(change.atMs).toISOString(),
      to: endOf(seenIn, episode.isOpen ? null : episode.to),
      series: series.source,
    },
    accuses: alone.map((rank) => ({
      kind: "fail-slow" as const,
      type: "rank" as const,
      ranks: [rank],
      link: null,
      cause: "unknown" as const,
      weight: ALONE_WEIGHT * change.confidence,
      why: `its iterations ${slowerSince(change, isNow)}, those of its peers ${isNow ? "do" : "did"} not`,
    })),
    clears: [],
  };
}

const UNTIL_STOP = "until the job stopped";

function slowerSince({ ratio, iteration, ramp }: ChangePoint, isNow: boolean): string {
  if (!ramp) return longerSince(ratio, isNow, `iteration ${iteration}`);
  const longer = `${isNow ? "take" : "took"} ${ratio.toFixed(2)} times as long`;
  return `slowed down gradually from iteration ${iteration} to ${ramp.until} and ${longer}`;
}

function longerSince(ratio: number, isNow: boolean, iteration: string): string {
  const times = `${ratio.toFixed(2)} times as long`;
  return isNow ? `take ${times} since ${iteration}` : `took ${times} from ${iteration}`;
}

/** A stretch that is over and cost little: worth a word, but the job is healthy again. */
function isPassing({ series }: TrackedSeries, { isOpen, wastedMs }: SlowDown["episode"]): boolean {
  const allMs = series.durationMs.reduce((sum, took) => sum + (took > 0 ? took : 0), 0);
  return !isOpen && wastedMs < SMALL_PART * allMs;
}

/** When the last slow iteration ended; null where it goes on or the series has no times. */
function endOf({ series }: TrackedSeries, iteration: number | null): string | null {
  if (iteration === null) return null;
  const at = series.endMs[series.iteration.lastIndexOf(iteration)];
  return at !== undefined && Number.isFinite(at) ? new Date(at).toISOString() : null;
}

/** That nothing slowed down is worth saying once, from the longest series. */
function* evenOnes(job: Job, stopped: boolean): Iterable<NewFinding> {
  const longest = job.iterations.reduce((a, b) => (b.iterations > a.iterations ? b : a));
  const { series, iterations, medianMs, variation } = longest;
  if (!Number.isFinite(medianMs) || iterations < 12) return;
  const step = stepIn(series);
  const length = count(Math.round(iterations), "iteration");
  if (step?.isPlain) {
    yield fromStep(step, series, length, stopped);
    return;
  }
  yield {
    says: step
      ? `iterations ${longerSince(step.ratio, !stopped, `about iteration ${step.iteration}`)}; ${length} are too few to be sure that this is no chance`
      : `no lasting slowdown in ${length} (median ${inUnit(medianMs, series)}, varying by ${(100 * variation).toFixed(1)} %)${wandering(job)}`,
    weight: 0.3,
    at: [{ file: series.file }],
    data: {
      fact: "even-iterations",
      evenIterations: Math.round(iterations),
      medianMs: round(medianMs),
      variation: round(variation),
      rise: round(riseOf(series)),
      ...(step && { riseFrom: step.iteration, riseRatio: round(step.ratio) }),
    },
    accuses: [],
    clears: [],
  };
}

/** Few iterations: surer than not, and less than what the tracker has followed. */
const OF_STEP = 0.7;

/** A short series with a step that nobody would call chance. */
function fromStep(
  step: Step,
  series: IterationSeries,
  length: string,
  stopped: boolean,
): NewFinding {
  const { at, iteration, beforeMs, afterMs, ratio } = step;
  const last = series.iteration.at(-1)!;
  const { endMs, durationMs } = series;
  const beganMs = endMs[at]! - durationMs[at]!;
  const wastedMs = durationMs.subarray(at).reduce((sum, ms) => sum + Math.max(0, ms - beforeMs), 0);
  return {
    says: `iterations ${longerSince(ratio, !stopped, `iteration ${iteration}`)} (${inUnit(beforeMs, series)} → ${inUnit(afterMs, series)}) ${stopped ? UNTIL_STOP : "and still do at the end"}, after ${length}`,
    weight: OF_STEP,
    at: [{ file: series.file }],
    data: {
      fact: "slow-down",
      slowDown: true,
      iteration,
      until: null,
      detectedAt: last,
      beforeMs: round(beforeMs),
      afterMs: round(afterMs),
      ratio: round(ratio),
      wastedHours: series.isRelative ? null : round(wastedMs / HOUR_MS),
      from: Number.isFinite(beganMs) ? new Date(beganMs).toISOString() : null,
      to: null,
      series: series.source,
    },
    accuses: [],
    clears: [],
  };
}

/** Single series that are slower at their end, by no more than one of many is by chance: said, never hidden. */
function wandering({ iterations }: Job): string {
  const open = iterations.flatMap(({ episodes }) =>
    episodes.filter(({ type, isOpen }) => type === "degradation" && isOpen),
  );
  if (open.length === 0) return "";
  const most = Math.max(...open.map(({ ratio }) => ratio));
  return `, but ${open.length} of ${iterations.length} series are slower at the end, by up to ${(100 * (most - 1)).toFixed(0)} %; single series often are by chance`;
}

/** The last third beside the first: a rise too small to be a slow-down may still go with what else is found. */
function riseOf({ durationMs }: IterationSeries): number {
  const known = durationMs.filter((took) => took > 0);
  const third = Math.floor(known.length / 3);
  return median(known.subarray(known.length - third)) / median(known.subarray(0, third));
}

/** Too short for the tracker, which learns the level from the first points: at most so many, and so many on either side. */
const SHORT = 30;
const BESIDE = 3;
const ROSE = 1.05;
/** Pairs of an earlier and a later iteration of which the later one takes longer. */
const ORDERED = 0.95;

/** A step is plain from this ratio on, if no more than this share of the iterations lies on the wrong side of its middle. */
const PLAIN_RATIO = 1.2;
const ASTRAY = 0.1;

interface Step {
  /** Row of the series. */
  readonly at: number;
  readonly iteration: number;
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly ratio: number;
  readonly isPlain: boolean;
}

/** Where a short series rises once and stays: nearly every iteration since takes longer than nearly every one before. */
function stepIn({ iteration, durationMs }: IterationSeries): Step | null {
  const known = [...iteration.keys()].filter((i) => durationMs[i]! > 0).slice(1);
  if (known.length > SHORT) return null;
  const took = known.map((i) => durationMs[i]!);
  let best = { at: -1, cost: Infinity };
  for (let at = BESIDE; at + BESIDE <= took.length; at++) {
    const cost = awayFromMedian(took.slice(0, at)) + awayFromMedian(took.slice(at));
    if (cost < best.cost) best = { at, cost };
  }
  const [before, after] = [took.slice(0, best.at), took.slice(best.at)];
  const [beforeMs, afterMs] = [median(before), median(after)];
  const ratio = afterMs / beforeMs;
  if (best.at < 0 || !(ratio >= ROSE)) return null;
  const longer = after.reduce((sum, ms) => sum + before.filter((one) => one < ms).length, 0);
  if (longer < ORDERED * before.length * after.length) return null;
  const middle = (beforeMs + afterMs) / 2;
  const astray =
    before.filter((ms) => ms >= middle).length + after.filter((ms) => ms <= middle).length;
  const isPlain = ratio >= PLAIN_RATIO && astray <= ASTRAY * took.length;
  const at = known[best.at]!;
  return { at, iteration: iteration[at]!, beforeMs, afterMs, ratio, isPlain };
}

function awayFromMedian(values: readonly number[]): number {
  const middle = median(values);
  return values.reduce((sum, one) => sum + Math.abs(one - middle), 0);
}

/** Spikes and fluctuations are reported, and accuse no rank; of a job that stopped, if they came until then. */
function* irregularOnes(job: Job, stopped: boolean): Iterable<NewFinding> {
  const longest = job.iterations.reduce((a, b) => (b.iterations > a.iterations ? b : a));
  const episodes = longest.episodes.filter(({ type }) => type !== "degradation");
  const last = episodes.at(-1);
  if (!last) return;
  if (stopped && longest.series.iteration.at(-1)! - last.to > LAST_ITERATIONS) return;
  const spikes = episodes.filter(({ type }) => type === "spike").length;
  const beats = episodes.filter(({ type }) => type === "fluctuation");
  const period = beats.find((beat) => beat.period !== null)?.period;
  const wasted = episodes.reduce((sum, { wastedMs }) => sum + wastedMs, 0);
  const parts = [
    ...(spikes > 0 ? [count(spikes, "spike")] : []),
    ...(beats.length > 0
      ? [
          `${count(beats.length, "fluctuation")}${period ? ` (about every ${period} iterations)` : ""}`,
        ]
      : []),
  ];
  yield {
    says: `${parts.join(" and ")} in the iteration times${longest.series.isRelative ? "" : `, ${hours(wasted)} wasted`}`,
    weight: 0.2,
    at: [{ file: longest.series.file }],
    data: {
      fact: "slow-episodes",
      spikes,
      fluctuations: beats.length,
      period: period ?? null,
      wastedHours: longest.series.isRelative ? null : round(wasted / HOUR_MS),
    },
    accuses: [],
    clears: [],
  };
}

function hours(timeMs: number): string {
  return timeMs >= HOUR_MS
    ? `${(timeMs / HOUR_MS).toFixed(1)} h`
    : `${(timeMs / 1000).toFixed(1)} s`;
}

/** Normalised values are in no unit. */
function inUnit(value: number, { isRelative }: IterationSeries): string {
  return isRelative ? String(Number(value.toPrecision(4))) : ms(value);
}

function ms(value: number): string {
  return value >= 10_000
    ? `${(value / 1000).toFixed(1)} s`
    : `${value.toFixed(value < 100 ? 1 : 0)} ms`;
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
