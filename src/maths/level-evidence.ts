/**
 * The verification behind the level tracker: is what looks like a new level one? Greyhound's 10 % rule (§4.2)
 * and three questions more, since 10 % alone accuses noisy series: does the difference stand out from how
 * medians of as many points wander within the level (noise that is correlated counts in full), do nearly all
 * new points lie on the new side, and is a handful of points overwhelming or merely a burst?
 * All values are logarithms.
 */
import { median, spread } from "./robust.ts";
import type { Trail } from "./trail.ts";
import { transitionOf, type Transition } from "./transition.ts";

export interface Level {
  readonly centre: number;
  readonly noise: number;
}

/** What is known when the question comes up. */
export interface LevelHistory {
  /** The points since the present level began, the newest last. */
  readonly values: readonly number[];
  /** The level before it, to which a relief goes back. */
  readonly previous: Level | null;
  /** Smallest change that counts, and smallest one that came slowly. */
  readonly minShift: number;
  readonly driftShift: number;
}

export interface Verified {
  readonly before: number;
  readonly after: number;
  /** 0..1 */
  readonly confidence: number;
}

/** Points on either side of a change that are compared: a step, not a slow drift. */
export const LOCAL = 20;
/** No series is quieter than this: clocks and rounding. */
export const MIN_NOISE = 0.003;
/** Points of history that are looked at. */
export const MEMORY = 256;
/** Points that level and noise are taken from. */
export const RECENT = 64;
/** Share of the smallest change that a single point must show to be on the new side. */
export const CLEAR = 0.8;
/** Fewest points of a new level. */
export const FEWEST = 4;
/** The same as LOCAL for small steps in much noise. */
const LONG = 60;
/** Share of the smallest change that must then show as a step close by. */
const STEP_SHARE = 0.8;
/** Share of the new points that must be on the new side. */
const NEW_SIDE = 0.8;
/**
 * Points of a new level, and how far it must stand out, from the noise and in smallest changes (2.3 of 10 %
 * are 25 %): a handful must be overwhelming, and without exception on the new side; jitters last a few points.
 */
const EVIDENCE = [
  { points: FEWEST, sigmas: 12, shifts: 2.3, onSide: 1 },
  { points: 5, sigmas: 7, shifts: 1, onSide: 1 },
  { points: 8, sigmas: 5, shifts: 1.5, onSide: NEW_SIDE },
  { points: 8, sigmas: 6, shifts: 1, onSide: NEW_SIDE },
  { points: 16, sigmas: 5, shifts: 1, onSide: NEW_SIDE },
  { points: LONG, sigmas: 6, shifts: 1, onSide: 0.65 },
] as const;
/**
 * Points after which a change may fall short of the smallest that counts, by so many standard errors of its median; and
 * the share of it that must be there all the same.
 */
const SETTLED = 16;
const ERRORS = 2;
const LEAST_OF_SMALLEST = 0.9;
/** How far such a one must stand out: medians of noise that wanders fall short of anything now and then. */
const PLAIN = 8;
/** Points after which a level is known well. */
const KNOWN_POINTS = 12;
const FEW_SIGMAS = 4;
/** So many in a row may be expected by chance, given how many single points are that far off. */
const BY_CHANCE = 0.001;
/** Points since the onset of a ramp, and how far it came, in deviations of single points. */
const RAMP_POINTS = 40;
const RAMP_NOISE = 4;

/** Whether a new level began at `at`, a position in the history's values. */
export function verify(history: LevelHistory, at: number): Verified | null {
  const points = history.values.length - at;
  if (at < 3 || points < FEWEST) return null;
  return compare(history, at, LOCAL) ?? (points >= LONG ? compare(history, at, LONG) : null);
}

/** Whether `after` is the faster level before the present slow one, and clearly not the present one. */
export function isOldLevel(
  { previous, minShift }: LevelHistory,
  present: number,
  after: number,
): boolean {
  if (!previous || present - previous.centre < minShift) return false;
  const near = Math.max(0.4 * minShift, 2 * previous.noise);
  return Math.abs(after - previous.centre) <= Math.min(near, 0.35 * (present - previous.centre));
}

/** Noise of the last points before `to`. */
export function noiseBefore(values: readonly number[], to: number): number {
  return Math.max(MIN_NOISE, spread(values.slice(Math.max(0, to - RECENT), to)));
}

/** On at most `window` points on either side. */
function compare(history: LevelHistory, at: number, window: number): Verified | null {
  const { values, minShift } = history;
  const olds = values.slice(Math.max(0, at - window), at);
  const news = values.slice(at, at + window);
  const points = values.length - at;
  const after = median(news);
  const before = median(olds);
  const shift = Math.abs(after - before);
  // Medians are estimates: of a change of exactly the smallest that counts every other one falls short of it.
  const isSettled = points >= SETTLED && shift >= LEAST_OF_SMALLEST * minShift;
  const error = isSettled ? wander(values, at, Math.min(points, window)) : 0;
  const smallest = Math.max(LEAST_OF_SMALLEST * minShift, minShift - ERRORS * error);
  if (shift < smallest) return null;
  const sign = after > before ? 1 : -1;
  // A wide window sees a slow drift as a step: the step must be there close by as well.
  if (window > LOCAL && sign * stepAt(values, at) < STEP_SHARE * minShift) return null;
  const mark = Math.min(shift / 2, CLEAR * minShift);
  const beyond = (y: number): boolean => sign * (y - before) >= mark;
  const onSide = news.filter(beyond).length / news.length;
  if (onSide >= NEW_SIDE && isBack(history, news, after, before))
    return { before, after, confidence: 0.95 };
  // A few quiet points are no level: then the new points must agree among themselves as well.
  if (at < 4 || (at < KNOWN_POINTS && shift < FEW_SIGMAS * spread(news, after))) return null;
  const sigmas = shift / wander(values, at, Math.min(points, window));
  if (shift < minShift && sigmas < PLAIN) return null;
  const enough = EVIDENCE.some(
    (rule) =>
      points >= rule.points &&
      sigmas >= rule.sigmas &&
      shift >= rule.shifts * smallest &&
      onSide >= rule.onSide,
  );
  const past = values.slice(Math.max(0, at - MEMORY), at);
  // A large shift is unheard of where points went beyond its mark now and then, but never half as far.
  const halfWay = (y: number): boolean => sign * (y - before) >= shift / 2;
  const chance = Math.min(byChance(past, news, beyond), byChance(past, news, halfWay));
  if (!enough || chance > BY_CHANCE) return null;
  const confidence = Math.min(0.99, 1 - 0.5 * Math.exp(-(sigmas - 3) / 3));
  return { before, after, confidence };
}

/** Expected runs of as many points, if single ones are as far off as often as they were. */
function byChance(
  past: readonly number[],
  news: readonly number[],
  isFar: (y: number) => boolean,
): number {
  const share = (past.filter(isFar).length + 0.5) / (past.length + 1);
  return past.length * share ** news.filter(isFar).length;
}

function stepAt(values: readonly number[], at: number): number {
  return median(values.slice(at, at + LOCAL)) - median(values.slice(Math.max(0, at - LOCAL), at));
}

/**
 * A change of which no point looks like one: it came slowly, or in several steps below 10 % that add up (the case that
 * Greyhound's verification misses, §7.2). One that is known already is followed however little it has gone on.
 */
export function rampOf(
  { values, driftShift }: LevelHistory,
  trail: Trail,
  goesOn: ((found: Transition) => boolean) | null,
): Transition | null {
  if (trail.values.length * trail.stride < RAMP_POINTS) return null;
  const now = median(values.slice(-LOCAL));
  // Cheap to ask: was it ever so far from where it is now?
  if (!goesOn && !trail.values.some((y) => Math.abs(y - now) >= driftShift)) return null;
  const found = transitionOf(trail.values, MIN_NOISE);
  const points = (trail.values.length - found.start) * trail.stride;
  if (!found.isRamp || points < RAMP_POINTS) return null;
  const shift = Math.abs(now - found.before);
  const least = goesOn?.(found) ? 0 : driftShift;
  // The trail is quieter than single points, and their slope is no noise.
  const { noise } = transitionOf(values.slice(-RECENT), MIN_NOISE);
  return shift >= Math.max(least, RAMP_NOISE * noise) ? found : null;
}

/** What a change at `at` looks like from close by: a step there, or part of a slope. */
export function shapeAt({ values }: LevelHistory, at: number): Transition & { goesOn: boolean } {
  const around = values.slice(Math.max(0, at - LONG));
  const found = transitionOf(around, MIN_NOISE);
  return { ...found, goesOn: found.end === around.length };
}

/** Whether the new points are those of the level before: a relief needs no more proof than that. */
function isBack(
  history: LevelHistory,
  news: readonly number[],
  after: number,
  before: number,
): boolean {
  if (news.length < 5 || !isOldLevel(history, before, after)) return false;
  return spread(news, after) <= 2 * history.previous!.noise + 0.2 * history.minShift;
}

/** How far medians of `points` points lie from each other within the level before `at`: one deviation. */
function wander(values: readonly number[], at: number, points: number): number {
  const past = values.slice(Math.max(0, at - MEMORY), at);
  const block = Math.max(1, Math.min(points, Math.floor(past.length / 6)));
  const step = Math.max(1, Math.floor(block / 2));
  const centre = median(past);
  let sum = 0;
  let blocks = 0;
  for (let i = 0; i + block <= past.length; i += step) {
    sum += (median(past.slice(i, i + block)) - centre) ** 2;
    blocks++;
  }
  // Few blocks say little: Student's correction, roughly. Half of each block is the next one's.
  const few = 1 + (3 * block) / past.length;
  const deviation = Math.sqrt(sum / blocks) * few * Math.sqrt(block / points);
  const floor = (1.25 * Math.max(MIN_NOISE, spread(past, centre))) / Math.sqrt(points);
  return Math.max(deviation, floor);
}
