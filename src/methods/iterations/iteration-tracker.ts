/**
 * Follows one series of iteration times as it comes: sorts out what is no slowness (warm-up, restarts, pauses
 * for checkpoints and evaluation, another batch size) and hands the rest to the level tracker. The same code
 * serves a file and a running job.
 */
import { LevelTracker } from "../../maths/level-tracker.ts";
import { median } from "../../maths/robust.ts";
import { CHECKPOINT, EVALUATION, START } from "../../model/series.ts";
import type { Pause } from "../../model/series.ts";

/** What a point is: it counts, nobody knows how long it took, or it is a pause. */
export type Role = "counts" | "unknown" | Pause["why"];

export interface PointShift {
  /** Indices of points. */
  readonly start: number;
  readonly detectedAt: number;
  readonly before: number;
  readonly after: number;
  readonly confidence: number;
  /** Point with which the level before began. */
  readonly levelStart: number;
}

export interface Point {
  readonly iteration: number;
  readonly durationMs: number;
  /** Bits: CHECKPOINT, EVALUATION, START. */
  readonly between: number;
  /** NaN where unknown. */
  readonly batch: number;
}

interface Seen {
  readonly index: number;
  readonly point: Point;
}

/** Points that tell the first level; those in front that are clearly slower are warm-up. */
const SETTLE_POINTS = 8;
/** Points after a restart that may be slow without meaning anything. */
const WARM_UP_POINTS = 5;
/** A first level this short that turns out slow was warm-up too: compilation, balancing experts. */
const LONG_WARM_UP = 30;
const SLOWER = 1.1;
/** One iteration this much longer is no iteration: the job stood still, or was started again in between. */
const STOOD_STILL = 5;
const STOOD_STILL_MS = 5000;

export class IterationTracker {
  readonly #levels = new LevelTracker();
  readonly #mark: (index: number, role: Role) => void;
  readonly #restarted: (iteration: number) => void;
  #points = 0;
  #last = NaN;
  #batch = NaN;
  /** Points since the beginning, or a new batch size, that wait for the level to be known. */
  #unsettled: Seen[] | null = [];
  #warmUpLeft = 0;
  /** First point after a restart, and the first after it that counts. */
  #restart = { at: -1, counted: -1 };
  /** A point that looks as if the job stood still, until the next tells. */
  #held: Seen | null = null;
  #levelStart = 0;
  #isFirstLevel = true;

  /** `mark` hears what became of a point, sometimes a few points late. */
  constructor(
    mark: (index: number, role: Role) => void = () => undefined,
    restarted: (iteration: number) => void = () => undefined,
  ) {
    this.#mark = mark;
    this.#restarted = restarted;
  }

  /** The level that counts at present; NaN before it is known. */
  get level(): number {
    return this.#levels.level;
  }

  push(point: Point): PointShift | null {
    const seen = { index: this.#points++, point };
    const isRestart = this.#isRestart(point);
    this.#last = point.iteration;
    if (isRestart) this.#restarted(point.iteration);
    if (!(point.durationMs > 0) || !Number.isFinite(point.durationMs)) {
      this.#mark(seen.index, "unknown");
      return null;
    }
    if (isRestart) {
      // The first iteration after a restart loads, compiles and warms up, whatever it prints.
      this.#mark(seen.index, "restart");
      this.#warmUpLeft = WARM_UP_POINTS;
      this.#restart = { at: seen.index, counted: -1 };
      return null;
    }
    if (this.#isNewBatch(point)) this.#forget(seen);
    return this.#unsettled ? this.#settle(seen) : this.#sort(seen);
  }

  #isRestart({ iteration, between }: Point): boolean {
    return iteration < this.#last || ((between & START) !== 0 && this.#points > 1);
  }

  #isNewBatch({ batch }: Point): boolean {
    const old = this.#batch;
    if (!(batch > 0) || batch === old) return false;
    this.#batch = batch;
    return old > 0;
  }

  /** Another batch size takes another time: nothing from before is comparable. */
  #forget({ index }: Seen): void {
    this.#levels.reset();
    this.#levelStart = index;
    this.#isFirstLevel = true;
    this.#unsettled = [];
    this.#held = null;
  }

  /** At the beginning: waits for enough points to tell warm-up from level. */
  #settle(seen: Seen): PointShift | null {
    const waiting = this.#unsettled!;
    waiting.push(seen);
    if (waiting.length < SETTLE_POINTS) return null;
    const typical = median(waiting.map(({ point }) => point.durationMs));
    let first = 0;
    while (first < waiting.length - 1 && waiting[first]!.point.durationMs > SLOWER * typical)
      this.#mark(waiting[first++]!.index, "warm-up");
    this.#unsettled = null;
    this.#levelStart = waiting[first]!.index;
    let shift: PointShift | null = null;
    for (const each of waiting.slice(first)) shift = this.#count(each) ?? shift;
    return shift;
  }

  #sort(seen: Seen): PointShift | null {
    const level = this.#levels.level;
    const { durationMs, between } = seen.point;
    const isSlow = durationMs > SLOWER * level;
    if (this.#warmUpLeft > 0) {
      this.#warmUpLeft = isSlow ? this.#warmUpLeft - 1 : 0;
      if (isSlow) return this.#pause(seen, "warm-up");
    }
    if (isSlow && between & CHECKPOINT) return this.#pause(seen, "checkpoint");
    if (isSlow && between & EVALUATION) return this.#pause(seen, "evaluation");
    const stoodStill = durationMs > STOOD_STILL * level && durationMs > level + STOOD_STILL_MS;
    const held = this.#held;
    this.#held = stoodStill && !held ? seen : null;
    if (this.#held) return null;
    if (!held) return this.#count(seen);
    if (!stoodStill) {
      // Alone among its neighbours: nothing slow, the job stood still once.
      this.#restarted(held.point.iteration);
      this.#pause(held, "restart");
      return this.#count(seen);
    }
    const shift = this.#count(held);
    return this.#count(seen) ?? shift;
  }

  #pause({ index }: Seen, why: Pause["why"]): null {
    this.#mark(index, why);
    return null;
  }

  #count({ index, point }: Seen): PointShift | null {
    this.#mark(index, "counts");
    if (this.#restart.counted < 0) this.#restart.counted = index;
    const found = this.#levels.push(index, point.durationMs);
    if (!found) return null;
    const levelStart = this.#levelStart;
    const isFirst = this.#isFirstLevel;
    this.#isFirstLevel = false;
    // Slower since a restart: since its first iteration, not since the first that we cared to look at.
    const sinceRestart = found.start === this.#restart.counted && found.after > found.before;
    const start = sinceRestart && this.#restart.at >= 0 ? this.#restart.at : found.start;
    this.#levelStart = start;
    if (isFirst && found.after < found.before && start - levelStart <= LONG_WARM_UP) {
      for (let i = levelStart; i < start; i++) this.#mark(i, "warm-up");
      return null;
    }
    return { ...found, start, levelStart };
  }
}
