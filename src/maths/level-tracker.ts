/**
 * Lasting changes of the level of a positive series, online (Greyhound §4.2): Bayesian change-point detection
 * proposes where a new level began, a verification decides (level-evidence.ts). Works on logarithms, so that
 * 10 % is 10 % whatever the unit, and learns level and noise from the series itself.
 */
import { Bocpd } from "./bocpd.ts";
import {
  CLEAR,
  FEWEST,
  isOldLevel,
  LOCAL,
  MEMORY,
  MIN_NOISE,
  noiseBefore,
  rampOf,
  RECENT,
  shapeAt,
  verify,
  type Level,
  type LevelHistory,
  type Verified,
} from "./level-evidence.ts";
import { median, spread } from "./robust.ts";
import { Trail } from "./trail.ts";
import type { Transition } from "./transition.ts";

export interface LevelShift {
  /** Index (as pushed) of the first point of the new level, and of the point at which it was known. */
  readonly start: number;
  readonly detectedAt: number;
  readonly before: number;
  readonly after: number;
  /** 0..1 */
  readonly confidence: number;
  /**
   * Whether it came slowly, or in small steps: `before` is then the level at its onset, `after` that of now. While it goes
   * on it is told again, with the same start.
   */
  readonly isRamp: boolean;
}

interface LevelOptions {
  /** Smallest change that counts, as a factor (Greyhound: 1.1). */
  readonly minRatio: number;
  /** Smallest change that counts of those that come slowly. */
  readonly driftRatio: number;
}

const LEVEL_DEFAULTS: LevelOptions = { minRatio: 1.1, driftRatio: 1.15 };

/** Points before anything is said: level and noise are unknown before. */
const LEARN_POINTS = 8;
const EXPECTED_RUN = 250;
const SURE = 0.9;
/** Coarser than the detector's own default: the alarm asks for 0.9, and noisy series keep many runs alive. */
const PRUNE = 1e-3;
/** A new level may lie anywhere within this of the old one (log units). */
const LEVEL_SPREAD = 0.3;
/** Wild points count as this far away, in noise and at least: one of them must not bury a level. */
const CLIP_NOISE = 8;
const CLIP_LEAST = Math.log(1.5);
const REFRESH = 16;
/** Values that all of a level is remembered by. */
const TRAIL = 240;
/** Points by which the detector's place may be off. */
const NEARBY = 5;
/** A point departs from a level when it is this far off, in noise and in smallest changes. */
const DEPART_NOISE = 4;
const DEPART_LEAST = 0.5;

export class LevelTracker {
  readonly #minShift: number;
  readonly #driftShift: number;
  /** Logarithms and indices of the present level's points, the newest last. */
  #values: number[] = [];
  #indices: number[] = [];
  /** The same level, all of it, coarser as it gets longer. */
  #trail = new Trail(TRAIL);
  #bocpd: Bocpd | null = null;
  /** Position in #values of the detector's point 0. */
  #offset = 0;
  #level: Level = { centre: NaN, noise: NaN };
  /** The level before the present one, to which a relief goes back. */
  #previous: Level | null = null;
  /** Centre of the present level when it was new: small changes are measured from it. */
  #origin = NaN;
  /** The same when the level was reported: what a slow relief comes down from. */
  #began = NaN;
  /** The ramp that led to the present level, and may go on. */
  #ramp: LevelShift | null = null;
  #sinceRefresh = 0;

  constructor({ minRatio, driftRatio }: LevelOptions = LEVEL_DEFAULTS) {
    this.#minShift = Math.log(minRatio);
    this.#driftShift = Math.log(driftRatio);
  }

  /** Typical value of the present level; NaN before it is known. */
  get level(): number {
    return Math.exp(this.#level.centre);
  }

  /** The points from here on have nothing to do with those before: another batch size, another job. */
  reset(): void {
    this.#values = [];
    this.#indices = [];
    this.#trail = new Trail(TRAIL);
    this.#bocpd = null;
    this.#previous = null;
    this.#ramp = null;
    this.#level = { centre: NaN, noise: NaN };
  }

  /** `index` grows from call to call; gaps are points that do not count. */
  push(index: number, value: number): LevelShift | null {
    const y = Math.log(value);
    this.#values.push(y);
    this.#indices.push(index);
    this.#trail.push(index, y);
    if (!this.#bocpd) {
      if (this.#values.length >= LEARN_POINTS) this.#learn(0);
      return null;
    }
    this.#bocpd.push(this.#clipped(y));
    if (++this.#sinceRefresh >= REFRESH) {
      const slow = this.#creptBack(index) ?? this.#ramped(index);
      if (slow) return slow;
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
    this.#trail = new Trail(TRAIL);
    for (const [i, value] of this.#values.entries()) this.#trail.push(this.#indices[i]!, value);
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
    if (!isOldLevel(this.#history(), this.#began, after)) return null;
    const middle = (this.#began + old.centre) / 2;
    const isOld = (y: number): boolean => y > middle === old.centre > middle;
    let at = values.length - LOCAL;
    while (at > 1 && isOld(median(values.slice(Math.max(0, at - 5), at)))) at--;
    const before = this.#began;
    return this.#shiftAt(at, index, { before, after, confidence: 0.8 });
  }

  /** A change so slow that no point of it looks like one. */
  #ramped(index: number): LevelShift | null {
    const last = this.#ramp;
    // It began with the first points since the last report, and goes the same way: the same ramp goes on.
    const goesOn =
      last &&
      ((found: Transition): boolean =>
        found.start <= NEARBY && found.after > found.before === last.after > last.before);
    const found = rampOf(this.#history(), this.#trail, goesOn);
    if (!found) return null;
    const begun = goesOn?.(found) ? last : null;
    const shift = {
      // A level that rises from its first point on: the step to it was told before, and is another change.
      start:
        begun?.start ??
        this.#trail.indexOf(this.#previous ? Math.max(1, found.start) : found.start),
      detectedAt: index,
      before: begun?.before ?? Math.exp(found.before),
      after: Math.exp(median(this.#values.slice(-LEARN_POINTS))),
      confidence: 0.8,
      isRamp: true,
    };
    this.#previous = { centre: Math.log(shift.before), noise: this.#level.noise };
    // What follows is measured from where it stands now, or from where it came to rest.
    const settled = this.#indices.findIndex((i) => i >= this.#trail.indexOf(found.end));
    this.#learn(
      Math.min(settled < 0 ? Infinity : settled, this.#values.length - LEARN_POINTS),
      this.#level.noise,
    );
    this.#ramp = shift;
    return shift;
  }

  #shiftAt(at: number, index: number, shift: Verified): LevelShift {
    const { before, after, confidence } = shift;
    const start = this.#indices[at]!;
    this.#previous = { centre: before, noise: noiseBefore(this.#values, at) };
    this.#learn(at, Math.min(this.#level.noise, this.#previous.noise));
    this.#ramp = null;
    return {
      start,
      detectedAt: index,
      before: Math.exp(before),
      after: Math.exp(after),
      confidence,
      isRamp: false,
    };
  }

  #history(): LevelHistory {
    return {
      values: this.#values,
      previous: this.#previous,
      minShift: this.#minShift,
      driftShift: this.#driftShift,
    };
  }

  #look(index: number): LevelShift | null {
    const proposed = this.#propose();
    if (proposed < 0) return null;
    const split = this.#refine(proposed);
    const shift = verify(this.#history(), split);
    if (!shift) return null;
    const { isRamp, goesOn } = shapeAt(this.#history(), split);
    const slow = isRamp ? this.#ramped(index) : null;
    if (slow || (isRamp && goesOn)) return slow;
    return this.#shiftAt(this.#firstToDepart(split, shift), index, shift);
  }

  /** Where a new level may have begun, as a position in #values; -1 for nowhere. */
  #propose(): number {
    const bocpd = this.#bocpd!;
    const { start, mean } = bocpd.mostLikely;
    const { centre } = this.#level;
    // Points that scatter widely look like one change after another: what counts is that all are away.
    const streak = this.#streak();
    if (streak < start && bocpd.time - streak >= FEWEST)
      return bocpd.probabilitySince(Math.max(1, streak - 2)) >= SURE ? this.#offset + streak : -1;
    if (start === 0 || bocpd.time - start < FEWEST - 1) return -1;
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
    const from = Math.max(begin + 1, at - NEARBY);
    const to = Math.min(end - 1, at + NEARBY);
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
  #firstToDepart(at: number, { before, after }: Verified): number {
    const values = this.#values;
    const sign = after > before ? 1 : -1;
    const far = Math.max(DEPART_NOISE * noiseBefore(values, at), DEPART_LEAST * this.#minShift);
    let first = at;
    while (first > Math.max(1, at - NEARBY) && sign * (values[first - 1]! - before) > far) first--;
    return first;
  }
}
