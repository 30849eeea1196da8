/**
 * The iterations that are slow now and then, among the last ones of a job: spikes and fluctuations within its level, as
 * the episode finder sees them (Holmes §3.1).
 */
import { irregularIterations } from "../../../methods/iterations/episodes.ts";
import { trackSeries } from "../../../methods/iterations/track-series.ts";
import { median } from "../../../maths/robust.ts";

/** Iterations that are looked at: what comes back less often than three times in so many is no pattern yet. */
const WINDOW = 200;
/** Below this ratio to the median no episode finder calls an iteration irregular (Holmes §3.1.2). */
const IRREGULAR = 1.05;
/** The pattern is over after so many iterations without a slow one, or so many usual gaps (episodes.ts has the same reach). */
const QUIET_ITERATIONS = 30;
const QUIET_GAPS = 4;
/** An incident goes on for so many times its longest gap: of spikes that come at random, one gap in fifty is that of its end otherwise. */
const LONGEST_GAPS = 2;

/** Slow iterations that make a pattern; and the share of what the newest one lost that another of its pattern loses, too. */
const PATTERN = 3;
const OF_NEWEST = 0.5;

/** Of the last so many, or of all since the first slow one: where more are slow, they are not slow now and then. */
const LATELY = 10;
/** So many in a row may go on for good: slowdown-detector.ts looks into that. */
const IN_A_ROW = 3;
const MOST_SLOW = 0.6;

/** Iterations that are slow now and then, and how long a regular and a slow one takes. */
export interface Intermittent {
  /** Numbers of the slow iterations, ascending. */
  readonly slow: readonly number[];
  /** How many iterations were looked at. */
  readonly of: number;
  readonly beforeMs: number;
  readonly afterMs: number;
  /** When the first slow iteration began, milliseconds since 1970. */
  readonly fromMs: number;
}

interface Kept {
  readonly iteration: number;
  readonly startMs: number;
  readonly ms: number;
}

export class IntermittentWindow {
  #kept: Kept[] = [];

  push(one: Kept): void {
    this.#kept.push(one);
    if (this.#kept.length > WINDOW) this.#kept.shift();
  }

  /** Those for which this is true belong to something else: a lasting slowdown, or a pattern that is over. */
  drop(isOther: (iteration: number) => boolean): void {
    this.#kept = this.#kept.filter(({ iteration }) => !isOther(iteration));
  }

  clear(): void {
    this.#kept = [];
  }

  /** What is slow now and then, where the newest iteration is; else null, for then nothing is new. */
  look(): Intermittent | null {
    const kept = this.#kept;
    const newest = kept.at(-1);
    const middle = median(kept.map(({ ms }) => ms));
    if (!newest || !(newest.ms > IRREGULAR * middle)) return null;
    const numbers = new Set(irregularIterations(trackSeries(seriesOf(kept))));
    if (!numbers.has(newest.iteration)) return null;
    const since = sinceQuiet(kept.filter(({ iteration }) => numbers.has(iteration)));
    if (isLasting(kept, numbers, kept.indexOf(since[0]!))) return null;
    const regular = kept.filter(({ iteration }) => !numbers.has(iteration));
    const beforeMs = median(regular.map(({ ms }) => ms));
    const slow = alike(since, newest, beforeMs);
    return {
      slow: slow.map(({ iteration }) => iteration),
      of: kept.length,
      beforeMs,
      afterMs: median(slow.map(({ ms }) => ms)),
      fromMs: slow[0]!.startMs,
    };
  }
}

/** After how many iterations without another one these are over. */
export function quietIterations(slow: readonly number[]): number {
  const gaps = gapsOf(slow);
  // Of two stretches nobody knows yet how often they come.
  if (gaps.length < 2) return QUIET_ITERATIONS;
  return Math.max(quietAfter(gaps), LONGEST_GAPS * Math.max(...gaps));
}

/** How many were slow in a row at most, before this iteration. */
export function longestRun(slow: readonly number[], before: number): number {
  let [longest, run] = [0, 0];
  for (const [i, number] of slow.entries()) {
    if (number >= before) break;
    run = number === slow[i - 1]! + 1 ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  return longest;
}

/** From one slow iteration to the next; neighbours are slow once. */
function gapsOf(slow: readonly number[]): number[] {
  return slow.slice(1).flatMap((number, i) => (number > slow[i]! + 1 ? number - slow[i]! : []));
}

/** How many iterations without a slow one end a pattern. */
function quietAfter(gaps: readonly number[]): number {
  return Math.max(QUIET_ITERATIONS, QUIET_GAPS * (gaps.length > 0 ? median(gaps) : 0));
}

/**
 * The slow ones since the job was last quiet for so long that what was before is over. How long that is, the other gaps
 * say: a gap that is judged by itself is never too long, where two stretches are all there is.
 */
function sinceQuiet(slow: readonly Kept[]): readonly Kept[] {
  const gaps = gapsOf(slow.map(({ iteration }) => iteration));
  let at = gaps.length - 1;
  for (let i = slow.length - 1; i > 0; i--) {
    const gap = slow[i]!.iteration - slow[i - 1]!.iteration;
    if (gap === 1) continue;
    if (gap > quietAfter(gaps.toSpliced(at--, 1))) return slow.slice(i);
  }
  return slow;
}

/** Those that lost much of what the newest one lost, where they make a pattern: the small hiccups before are another story. */
function alike(slow: readonly Kept[], newest: Kept, beforeMs: number): readonly Kept[] {
  const least = beforeMs + OF_NEWEST * (newest.ms - beforeMs);
  const large = sinceQuiet(slow.filter(({ ms }) => ms >= least));
  return large.length >= PATTERN ? large : slow;
}

/** Whether most iterations are slow, since the first slow one or of late: that is for the tracker of levels. */
function isLasting(kept: readonly Kept[], slow: ReadonlySet<number>, first: number): boolean {
  if (kept.slice(-IN_A_ROW).every(({ iteration }) => slow.has(iteration))) return true;
  return [first, Math.max(0, kept.length - LATELY)].some((from) => {
    const since = kept.slice(from);
    return since.filter(({ iteration }) => slow.has(iteration)).length > MOST_SLOW * since.length;
  });
}

function seriesOf(kept: readonly Kept[]): Parameters<typeof trackSeries>[0] {
  const { length } = kept;
  return {
    source: "agents",
    file: "agents",
    rank: null,
    basis: "reported",
    iteration: Float64Array.from(kept, ({ iteration }) => iteration),
    durationMs: Float64Array.from(kept, ({ ms }) => ms),
    endMs: Float64Array.from(kept, ({ startMs, ms }) => startMs + ms),
    line: new Int32Array(length),
    batch: new Float64Array(length).fill(NaN),
    between: new Uint8Array(length),
  };
}
