/**
 * Lasting changes of the level of a positive series, online (Greyhound §4.2): Bayesian change-point detection
 * proposes where a new level began, a verification decides. Works on logarithms, so that 10 % is 10 %
 * whatever the unit, and learns level and noise from the series itself.
 *
 * The verification is Greyhound's 10 % rule and three questions more, since 10 % alone accuses noisy series:
 * does the difference stand out from how medians of as many points wander within the level (noise that is
 * correlated counts in full), do nearly all new points lie on the new side, and is a handful of points
 * overwhelming or merely a burst?
 */
import { Bocpd } from "./bocpd.ts";
import { median, spread } from "./robust.ts";

export interface LevelShift {
  /** Index (as pushed) of the first point of the new level, and of the point at which it was known. */
  readonly start: number;
  readonly detectedAt: number;
  readonly before: number;
  readonly after: number;
  /** 0..1 */
  readonly confidence: number;
}

export interface LevelOptions {
  /** Smallest change that counts, as a factor (Greyhound: 1.1). */
  readonly minRatio: number;
  /** Smallest sum of creeping changes that counts. */
  readonly driftRatio: number;
}

export const LEVEL_DEFAULTS: LevelOptions = { minRatio: 1.1, driftRatio: 1.15 };

/** Points before anything is said: level and noise are unknown before. */
const LEARN_POINTS = 8;
/** Points that are remembered of a level. */
const MEMORY = 256;
/** Points on either side of a change that the verification compares: a step, not a slow drift. */
const LOCAL = 20;
/** The same for small steps in much noise. */
const LONG = 60;
/** Points of a run that crept up, and how far, in deviations of single points. */
const CREPT_POINTS = 40;
const CREPT_NOISE = 4;
/** Share of the smallest change that must show as a step close by. */
const STEP_SHARE = 0.8;
const EXPECTED_RUN = 250;
const SURE = 0.9;
/** Coarser than the detector's own default: the alarm asks for 0.9, and noisy series keep many runs alive. */
const PRUNE = 1e-3;
/** No series is quieter than this (log units): clocks and rounding. */
const MIN_NOISE = 0.003;
/** A new level may lie anywhere within this of the old one (log units). */
const LEVEL_SPREAD = 0.3;
/** Wild points count as this far away, in noise and at least: one of them must not bury a level. */
const CLIP_NOISE = 8;
const CLIP_LEAST = Math.log(1.5);
const REFRESH = 16;
/** Points that level and noise are taken from. */
const RECENT = 64;

/** Share of the new points that must be on the new side. */
const NEW_SIDE = 0.8;
/**
 * Fewest points of a new level, and how far it must stand out: a handful must be overwhelming, and without
 * exception on the new side; jitters last a few points.
 */
const EVIDENCE = [
  { points: 4, sigmas: 12, ratio: 1.25, onSide: 1 },
  { points: 5, sigmas: 7, ratio: 1.1, onSide: 1 },
  { points: 8, sigmas: 5, ratio: 1.1, onSide: NEW_SIDE },
  { points: 60, sigmas: 6, ratio: 1.1, onSide: 0.65 },
] as const;
/** Points after which a level is known well. */
const KNOWN_POINTS = 12;
const FEW_SIGMAS = 4;
/** Share of the smallest change that a single point must show to be on the new side. */
const CLEAR = 0.8;
/** So many in a row may be expected by chance, given how many single points are that far off. */
const BY_CHANCE = 0.001;
/** A point departs from a level when it is this far off, in noise and at least (log units). */
const DEPART_NOISE = 4;
const DEPART_LEAST = Math.log(1.05);

interface Verified {
  readonly before: number;
  readonly after: number;
  readonly confidence: number;
}

interface Level {
  readonly centre: number;
  readonly noise: number;
}

export class LevelTracker {
  readonly #minShift: number;
  readonly #driftShift: number;
  /** Logarithms and indices of the present level's points, the newest last. */
  #values: number[] = [];
  #indices: number[] = [];
  #bocpd: Bocpd | null = null;
  /** Position in #values of the detector's point 0. */
  #offset = 0;
  #level: Level = { centre: NaN, noise: NaN };
  /** The level before the present one, to which a relief goes back. */
  #previous: Level | null = null;
  /** Centre of the present level when it was new: creeping changes are measured from it. */
  #origin = NaN;
  /** The same when the level was reported: what a slow relief comes down from. */
  #began = NaN;
  #sinceRefresh = 0;

  constructor({ minRatio, driftRatio }: LevelOptions = LEVEL_DEFAULTS) {
    this.#minShift = Math.log(minRatio);
    this.#driftShift = Math.log(driftRatio);
  }

  /** Typical value of the present level; NaN before it is known. */
  get level(): number {
    return Math.exp(this.#level.centre);
  }

  /** Robust relative variation within the level. */
  get noise(): number {
    return this.#level.noise;
  }

  /** The points from here on have nothing to do with those before: another batch size, another job. */
  reset(): void {
    this.#values = [];
    this.#indices = [];
    this.#bocpd = null;
    this.#previous = null;
    this.#level = { centre: NaN, noise: NaN };
  }

  /** `index` grows from call to call; gaps are points that do not count. */
  push(index: number, value: number): LevelShift | null {
    const y = Math.log(value);
    this.#values.push(y);
    this.#indices.push(index);
    if (this.#values.length < LEARN_POINTS) return null;
    if (!this.#bocpd) {
      this.#learn(0);
      return null;
    }
    this.#bocpd.push(this.#clipped(y));
    if (++this.#sinceRefresh >= REFRESH) {
      const back = this.#creptBack(index);
      if (back) return back;
      this.#refresh();
    }
    return this.#look(index);
  }

  #clipped(y: number): number {
    const reach = Math.max(CLIP_NOISE * this.#level.noise, CLIP_LEAST);
    return Math.min(Math.max(y, this.#level.centre - reach), this.#level.centre + reach);
  }

  /** Learns level and noise from the points since `from`, and starts a detector on them. */
  #learn(from: number, noise?: number): void {
    this.#values = this.#values.slice(from);
    this.#indices = this.#indices.slice(from);
    const centre = median(this.#values);
    this.#level = {
      centre,
      noise: Math.max(MIN_NOISE, noise ?? 0, spread(this.#values, centre)),
    };
    this.#origin = centre;
    this.#began = centre;
    this.#restart(0);
  }

  /** A new detector, fed with the points since `from`. */
  #restart(from: number): void {
    const { centre, noise } = this.#level;
    this.#offset = from;
    this.#bocpd = new Bocpd({
      lambda: EXPECTED_RUN,
      prune: PRUNE,
      prior: {
        mean: centre,
        kappa: Math.min(1, (noise / LEVEL_SPREAD) ** 2),
        alpha: 2,
        beta: 2 * noise * noise,
      },
    });
    for (let i = from; i < this.#values.length; i++)
      this.#bocpd.push(this.#clipped(this.#values[i]!));
    this.#sinceRefresh = 0;
  }

  /** Now and then: forget old points, and learn the noise anew. */
  #refresh(): void {
    this.#sinceRefresh = 0;
    const recent = this.#values.slice(-RECENT);
    const centre = median(recent);
    const noise = Math.max(MIN_NOISE, spread(recent, centre));
    const wasOff = noise > 2 * this.#level.noise || noise < 0.5 * this.#level.noise;
    this.#level = { centre, noise };
    if (this.#values.length <= recent.length) this.#origin = centre;
    if (this.#values.length > 2 * MEMORY) {
      this.#values = this.#values.slice(-MEMORY);
      this.#indices = this.#indices.slice(-MEMORY);
      this.#restart(MEMORY / 2);
    } else if (wasOff) this.#restart(Math.max(this.#offset, this.#values.length - MEMORY / 2));
  }

  /** A relief that came too slowly to be a step: the last points are those of the level before. */
  #creptBack(index: number): LevelShift | null {
    const old = this.#previous;
    const values = this.#values;
    if (!old || values.length < LOCAL) return null;
    const after = median(values.slice(-LOCAL));
    if (!this.#isOldLevel(old, this.#began, after)) return null;
    const middle = (this.#began + old.centre) / 2;
    const isOld = (y: number): boolean => y > middle === old.centre > middle;
    let at = values.length - LOCAL;
    while (at > 1 && isOld(median(values.slice(Math.max(0, at - 5), at)))) at--;
    return this.#shiftAt(at, index, this.#began, after, 0.8);
  }

  #shiftAt(
    at: number,
    index: number,
    before: number,
    after: number,
    confidence: number,
  ): LevelShift {
    const start = this.#indices[at]!;
    this.#previous = { centre: before, noise: this.#noiseOf(0, at) };
    this.#learn(at, Math.min(this.#level.noise, this.#previous.noise));
    return {
      start,
      detectedAt: index,
      before: Math.exp(before),
      after: Math.exp(after),
      confidence,
    };
  }

  /** Whether `after` is the faster level before the present slow one, and clearly not the present one. */
  #isOldLevel(old: Level, present: number, after: number): boolean {
    const gap = present - old.centre;
    if (gap < this.#minShift) return false;
    return Math.abs(after - old.centre) <= Math.min(Math.max(0.04, 2 * old.noise), 0.35 * gap);
  }

  #look(index: number): LevelShift | null {
    const proposed = this.#propose();
    if (proposed < 0) return null;
    const split = this.#refine(proposed);
    const shift = this.#verify(split);
    if (!shift) return null;
    const { before, after, confidence } = shift;
    return this.#shiftAt(
      this.#firstToDepart(split, before, after),
      index,
      before,
      after,
      confidence,
    );
  }

  /** Where a new level may have begun, as a position in #values; -1 for nowhere. */
  #propose(): number {
    const bocpd = this.#bocpd!;
    const { start, mean } = bocpd.mostLikely;
    const { centre } = this.#level;
    // Points that scatter widely look like one change after another: what counts is that all are away.
    const streak = this.#streak();
    if (streak < start && bocpd.time - streak >= EVIDENCE[0].points)
      return bocpd.probabilitySince(Math.max(1, streak - 2)) >= SURE ? this.#offset + streak : -1;
    if (start === 0 || bocpd.time - start < EVIDENCE[0].points - 1) return -1;
    // Half of what would count: cheap to ask, and most runs of a noisy series end here.
    const far = this.#minShift / 2;
    if (Math.abs(mean - centre) < far && Math.abs(mean - this.#origin) < far) return -1;
    return bocpd.probabilitySince(Math.max(1, start - 2)) >= SURE ? this.#offset + start : -1;
  }

  /** First of the last points that are all away from the level on one side, as the detector counts. */
  #streak(): number {
    const values = this.#values;
    const { centre } = this.#level;
    const far = CLEAR * this.#minShift;
    const sign = values.at(-1)! > centre ? 1 : -1;
    let first = values.length;
    while (first > this.#offset + 1 && sign * (values[first - 1]! - centre) >= far) first--;
    return first - this.#offset;
  }

  #noiseOf(from: number, to: number): number {
    return Math.max(MIN_NOISE, spread(this.#values.slice(Math.max(from, to - RECENT), to)));
  }

  /** The detector sees clipped values and a prior: the split that fits both medians best is looked for nearby. */
  #refine(at: number): number {
    const values = this.#values;
    const end = Math.min(values.length, at + LOCAL);
    const begin = Math.max(0, at - LOCAL);
    const before = median(values.slice(begin, at));
    const after = median(values.slice(at, end));
    let best = at;
    let least = Infinity;
    let cost = 0;
    // Moving the split by one point changes the cost by that point's own difference.
    const from = Math.max(begin + 1, at - 5);
    const to = Math.min(end - 1, at + 5);
    for (let split = from; split <= to; split++) {
      if (split > from)
        cost += Math.abs(values[split - 1]! - before) - Math.abs(values[split - 1]! - after);
      if (cost < least) {
        least = cost;
        best = split;
      }
    }
    return best;
  }

  /** The change begins with the first point that leaves the old level, not where the new one is reached. */
  #firstToDepart(at: number, before: number, after: number): number {
    const sign = after > before ? 1 : -1;
    const far = Math.max(DEPART_NOISE * this.#noiseOf(0, at), DEPART_LEAST);
    let first = at;
    while (first > Math.max(1, at - 5) && sign * (this.#values[first - 1]! - before) > far) first--;
    return first;
  }

  #verify(at: number): Verified | null {
    const points = this.#values.length - at;
    if (at < 3 || points < EVIDENCE[0].points) return null;
    return this.#compare(at, LOCAL) ?? (points >= LONG ? this.#compare(at, LONG) : null);
  }

  /** The verification proper, on at most `window` points on either side. */
  #compare(at: number, window: number): Verified | null {
    const values = this.#values;
    const olds = values.slice(Math.max(0, at - window), at);
    const news = values.slice(at, at + window);
    const points = values.length - at;
    const after = median(news);
    const local = median(olds);
    if (Math.abs(after - local) < this.#minShift) return this.#creptUp(at, after);
    const before = local;
    const shift = Math.abs(after - before);
    const sign = after > before ? 1 : -1;
    // A wide window sees a slow drift as a step: the step must be there close by as well.
    if (window > LOCAL && sign * this.#stepAt(at) < STEP_SHARE * this.#minShift) return null;
    const mark = Math.min(shift / 2, CLEAR * this.#minShift);
    const beyond = (y: number): boolean => sign * (y - before) >= mark;
    const onSide = news.filter(beyond).length / news.length;
    if (onSide >= NEW_SIDE && this.#isBack(news, after, before))
      return { before, after, confidence: 0.95 };
    // A few quiet points are no level: then the new points must agree among themselves as well.
    if (at < 4 || (at < KNOWN_POINTS && shift < FEW_SIGMAS * spread(news, after))) return null;
    const sigmas = shift / this.#wander(at, Math.min(points, window));
    const enough = EVIDENCE.some(
      (rule) =>
        points >= rule.points &&
        sigmas >= rule.sigmas &&
        shift >= Math.log(rule.ratio) &&
        onSide >= rule.onSide,
    );
    const history = values.slice(Math.max(0, at - MEMORY), at);
    const share = (history.filter(beyond).length + 0.5) / (history.length + 1);
    if (!enough || history.length * share ** news.length > BY_CHANCE) return null;
    return { before, after, confidence: Math.min(0.99, 1 - 0.5 * Math.exp(-(sigmas - 3) / 3)) };
  }

  #stepAt(at: number): number {
    const values = this.#values;
    return median(values.slice(at, at + LOCAL)) - median(values.slice(Math.max(0, at - LOCAL), at));
  }

  /**
   * Several steps below 10 % that add up, the case that Greyhound's verification misses (§7.2): the present
   * run, long enough, lies clearly above where the level began. Its steps must not count as noise, so the
   * noise is that of the last points before this run.
   */
  #creptUp(at: number, after: number): Verified | null {
    const shift = after - this.#origin;
    const points = this.#values.length - at;
    if (shift < this.#driftShift || points < CREPT_POINTS) return null;
    const noise = this.#noiseOf(Math.max(0, at - LOCAL), at);
    if (shift < CREPT_NOISE * noise) return null;
    return { before: this.#origin, after, confidence: 0.8 };
  }

  /** Whether the new points are those of the level before: a relief needs no more proof than that. */
  #isBack(news: readonly number[], after: number, before: number): boolean {
    const old = this.#previous;
    if (!old || news.length < 5 || !this.#isOldLevel(old, before, after)) return false;
    return spread(news, after) <= 2 * old.noise + 0.02;
  }

  /** How far medians of `points` points lie from each other within the level before `at`: one deviation. */
  #wander(at: number, points: number): number {
    const history = this.#values.slice(Math.max(0, at - MEMORY), at);
    const block = Math.max(1, Math.min(points, Math.floor(history.length / 6)));
    const step = Math.max(1, Math.floor(block / 2));
    const medians: number[] = [];
    for (let i = 0; i + block <= history.length; i += step)
      medians.push(median(history.slice(i, i + block)));
    const centre = median(history);
    let sum = 0;
    for (const value of medians) sum += (value - centre) ** 2;
    // Few blocks say little: Student's correction, roughly. Half of each block is the next one's.
    const few = 1 + (3 * block) / history.length;
    const deviation = Math.sqrt(sum / medians.length) * few * Math.sqrt(block / points);
    const floor = (1.25 * Math.max(MIN_NOISE, spread(history, centre))) / Math.sqrt(points);
    return Math.max(deviation, floor);
  }
}
