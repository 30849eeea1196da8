/** The methods that Greyhound compares itself with in its tables 3 and 4, and Greyhound's own (§4.2, §7.2). */
import { Bocpd } from "../../src/maths/bocpd.ts";
import { median, spread } from "../../src/maths/robust.ts";
import { IterationTracker } from "../../src/methods/iterations/iteration-tracker.ts";

/** Whether a series of iteration times is reported as a fail-slow; and where, for ours. */
export type Detector = (times: readonly number[]) => readonly number[];

const WINDOW = 10;
const TEN_PERCENT = 1.1;
const LEARN = 30;
const SURE = 0.9;
/** Points after which a change is taken for one (the paper's P(r = 0) cannot fire; bocpd.ts). */
const LAG = 5;

/** "a fail-slow if there's a >10 % performance change in the sliding window from the current median" */
export const slidingWindow: Detector = (times) => {
  const found: number[] = [];
  for (let i = LEARN; i + WINDOW <= times.length; i += 1) {
    const usual = median(times.slice(Math.max(0, i - 500), i));
    const now = times.slice(i, i + WINDOW).reduce((sum, time) => sum + time, 0) / WINDOW;
    if (now > TEN_PERCENT * usual) {
      found.push(i);
      i += WINDOW;
    }
  }
  return found;
};

/** Bayesian online change points on the times, standardised by the first; every change is reported. */
export const bocd: Detector = (times) => changes(times).map(({ at }) => at);

/** … and verified: the averages before and after differ by more than 10 %, towards slower. */
export const bocdVerified: Detector = (times) => {
  const all = changes(times);
  return all.flatMap(({ at }, k) => {
    const from = all[k - 1]?.at ?? 0;
    const to = all[k + 1]?.at ?? times.length;
    const mean = (a: number, b: number): number =>
      times.slice(a, b).reduce((sum, time) => sum + time, 0) / Math.max(1, b - a);
    return mean(at, to) > TEN_PERCENT * mean(from, at) ? [at] : [];
  });
};

function changes(times: readonly number[]): { at: number }[] {
  const first = times.slice(1, LEARN);
  const centre = median(first);
  const scale = Math.max(spread(first, centre), 1e-3 * centre);
  const bocpd = new Bocpd({
    lambda: 250,
    prior: { mean: 0, kappa: 0.1, alpha: 1, beta: 1 },
  });
  const found: { at: number }[] = [];
  let known = 0;
  for (const time of times.slice(1)) {
    bocpd.push((time - centre) / scale);
    const { start } = bocpd.mostLikely;
    if (start <= known || bocpd.time - start < LAG) continue;
    if (bocpd.probabilitySince(start) < SURE) continue;
    found.push({ at: start + 1 });
    known = start;
  }
  return found;
}

/** What Greyhound's published code does before its change points: points with |z| > 3 are dropped. */
export function withoutOutliers(detect: Detector): Detector {
  return (times) => {
    const kept: number[] = [];
    const places: number[] = [];
    const recent: number[] = [];
    for (const [index, time] of times.entries()) {
      const mean = recent.reduce((sum, each) => sum + each, 0) / recent.length;
      const variance = recent.reduce((sum, each) => sum + (each - mean) ** 2, 0) / recent.length;
      recent.push(time);
      if (recent.length > 100) recent.shift();
      if (recent.length > 10 && Math.abs(time - mean) > 3 * Math.sqrt(variance)) continue;
      kept.push(time);
      places.push(index);
    }
    return detect(kept).map((at) => places[at] ?? at);
  };
}

export const ours: Detector = (times) => {
  const tracker = new IterationTracker();
  const found: number[] = [];
  for (const [index, durationMs] of times.entries()) {
    const shift = tracker.push({ iteration: index + 1, durationMs, between: 0, batch: NaN });
    if (shift && shift.after > shift.before) found.push(shift.start);
  }
  return found;
};
