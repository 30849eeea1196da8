/**
 * Follows one series of iteration times as it comes: sorts out what is no slowness (warm-up, restarts, pauses
 * for checkpoints and evaluation, another batch size) and hands the rest to the level tracker. The same code
 * serves a file and a running job.
 */
import { LevelTracker } from "../../maths/level-tracker.ts";
import { median } from "../../maths/robust.ts";
import { CHECKPOINT, EVALUATION, START } from "../../model/series.ts";
import type { Pause } from "../../model/series.ts";

/** What a point is: it counts, nobody knows how long it took, it was printed before, or it is a pause. */
export type Role = "counts" | "unknown" | "again" | Pause["why"];

export interface PointShift {
  /** Indices of points. */
  readonly start: number;
  readonly detectedAt: number;
  readonly before: number;
  readonly after: number;
  readonly confidence: number;
  /** Whether it came gradually; it is reported again, with the same start, while it continues. */
  readonly isRamp: boolean;
}

interface Point {
  readonly iteration: number;
  readonly durationMs: number;
  /** Bits: CHECKPOINT, EVALUATION, START. */
  readonly between: number;
  /** NaN where unknown. */
  readonly batch: number;
}

/** Hears what becomes of points, sometimes a few points late. */
interface Listener {
  readonly mark?: (index: number, role: Role) => void;
  readonly restarted?: (iteration: number) => void;
  /** From this point on nothing before is comparable. */
  readonly newBatch?: (index: number) => void;
}

interface Seen {
  readonly index: number;
  readonly point: Point;
}

/** Points that tell the first level; those in front that are clearly slower are warm-up. */
const SETTLE_POINTS = 8;
/** Points, and iterations, after a restart that may be slow without meaning anything. */
const WARM_UP_POINTS = 5;
const WARM_UP_ITERATIONS = 20;
/** A first level this short that turns out slow was warm-up too: compilation, balancing experts. */
const LONG_WARM_UP = 30;
const LONG_WARM_UP_ITERATIONS = 300;
const SLOWER = 1.1;
/** One iteration this much longer is no iteration: the job stood still, whatever it waited for. */
const STOOD_STILL = 5;
const STOOD_STILL_MS = 5000;
/** So many of them within so many points are no exceptions any more. */
const STALLS = 3;
const STALLS_WITHIN = 30;
/** A mark that stands at more than half of the last points excuses nothing. */
const MARKS_REMEMBERED = 20;
/** Sizes that differ by less are the same: the last batch of an epoch. */
const SAME_BATCH = 0.02;
/** Lines of several ranks in one file come a little out of order. */
const OUT_OF_ORDER = 3;
const NUMBERS_REMEMBERED = 64;

export class IterationTracker {
  readonly #levels = new LevelTracker();
  readonly #mark: (index: number, role: Role) => void;
  readonly #restarted: (iteration: number) => void;
  readonly #newBatch: (index: number) => void;
  #points = 0;
  #last = NaN;
  #stride = 1;
  #batch = NaN;
  /** Points since the beginning, or a new batch size, that wait for the level to be known. */
  #unsettled: Seen[] | null = [];
  #warmUp = { points: 0, until: 0 };
  /** First point after a restart, and the first after it that counts. */
  #restart = { at: -1, counted: -1 };
  /** A point that looks as if the job stood still, until the next tells. */
  #held: Seen | null = null;
  /** The last points at which the job stood still, and the marks and numbers of the last points. */
  readonly #stalls: number[] = [];
  readonly #marks: number[] = [];
  readonly #numbers: number[] = [];
  #levelStart: Seen | null = null;
  #isFirstLevel = true;
  /** Numbers of the first points of the first level, by how many points they come after its first. */
  #firstNumbers: number[] = [];
  /** Where the job began to become faster from its beginning on; -1 for nowhere. */
  #underWay = -1;

  constructor(listener: Listener = {}) {
    this.#mark = listener.mark ?? (() => undefined);
    this.#restarted = listener.restarted ?? (() => undefined);
    this.#newBatch = listener.newBatch ?? (() => undefined);
  }

  /** The level that counts at present; NaN before it is known. */
  get level(): number {
    return this.#levels.level;
  }

  push(point: Point): PointShift | null {
    const seen = { index: this.#points++, point };
    if (this.#isAgain(point)) {
      this.#mark(seen.index, "again");
      return null;
    }
    remember(this.#numbers, point.iteration, NUMBERS_REMEMBERED);
    remember(this.#marks, point.between, MARKS_REMEMBERED);
    const isRestart = this.#isRestart(point);
    if (point.iteration > this.#last) this.#stride = point.iteration - this.#last;
    this.#last = point.iteration;
    if (isRestart) this.#restarted(point.iteration);
    if (!(point.durationMs > 0) || !Number.isFinite(point.durationMs)) {
      this.#mark(seen.index, "unknown");
      return null;
    }
    if (isRestart) {
      // The first iteration after a restart loads, compiles and warms up, whatever it prints.
      this.#mark(seen.index, "restart");
      this.#warmUp = { points: WARM_UP_POINTS, until: point.iteration + WARM_UP_ITERATIONS };
      this.#restart = { at: seen.index, counted: -1 };
      return null;
    }
    if (this.#isNewBatch(point)) this.#forget(seen);
    return this.#unsettled ? this.#settle(seen) : this.#sort(seen);
  }

  /** Printed before: by another rank into the same file, or twice. */
  #isAgain({ iteration, between }: Point): boolean {
    if (iteration > this.#last || this.#means(between, START)) return false;
    return (
      this.#last - iteration <= OUT_OF_ORDER * this.#stride && this.#numbers.includes(iteration)
    );
  }

  #isRestart({ iteration, between }: Point): boolean {
    return iteration < this.#last || (this.#means(between, START) && this.#points > 1);
  }

  /** Whether the mark is there and says something: one that always stands there does not. */
  #means(between: number, mark: number): boolean {
    if ((between & mark) === 0) return false;
    const marked = this.#marks.reduce((sum, bits) => sum + ((bits & mark) !== 0 ? 1 : 0), 0);
    return 2 * marked <= Math.max(4, this.#marks.length);
  }

  #isNewBatch({ batch }: Point): boolean {
    const old = this.#batch;
    if (!(batch > 0) || Math.abs(batch / old - 1) <= SAME_BATCH) return false;
    this.#batch = batch;
    return old > 0;
  }

  /** Another batch size takes another time: nothing from before is comparable. */
  #forget(seen: Seen): void {
    for (const { index } of [...(this.#unsettled ?? []), ...(this.#held ? [this.#held] : [])])
      this.#mark(index, "counts");
    this.#newBatch(seen.index);
    this.#levels.reset();
    this.#levelStart = seen;
    this.#isFirstLevel = true;
    this.#firstNumbers = [];
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
    this.#levelStart = waiting[first]!;
    let shift: PointShift | null = null;
    for (const each of waiting.slice(first)) shift = this.#count(each) ?? shift;
    return shift;
  }

  #sort(seen: Seen): PointShift | null {
    const level = this.#levels.level;
    const { durationMs, between } = seen.point;
    const isSlow = durationMs > SLOWER * level;
    if (this.#warmUp.points > 0) {
      const isOver = !isSlow || seen.point.iteration > this.#warmUp.until;
      this.#warmUp.points = isOver ? 0 : this.#warmUp.points - 1;
      if (!isOver) return this.#pause(seen, "warm-up");
    }
    if (isSlow && this.#means(between, CHECKPOINT)) return this.#pause(seen, "checkpoint");
    if (isSlow && this.#means(between, EVALUATION)) return this.#pause(seen, "evaluation");
    const stoodStill = this.#stoodStill(seen, level);
    const held = this.#held;
    this.#held = stoodStill && !held ? seen : null;
    if (this.#held) return null;
    if (!held) return this.#count(seen);
    if (!stoodStill) {
      // Alone among its neighbours: nothing slow, the job stood still once; at its beginning it got under way.
      const isStart = held.index < LONG_WARM_UP;
      remember(this.#stalls, held.index, STALLS);
      this.#pause(held, isStart ? "warm-up" : "standstill");
      return this.#count(seen);
    }
    const first = this.#count(held);
    const shift = this.#count(seen) ?? first;
    return shift && { ...shift, detectedAt: seen.index };
  }

  #stoodStill({ index, point: { durationMs } }: Seen, level: number): boolean {
    if (durationMs <= STOOD_STILL * level || durationMs <= level + STOOD_STILL_MS) return false;
    if (this.#stalls.length < STALLS || index - this.#stalls[0]! > STALLS_WITHIN) return true;
    remember(this.#stalls, index, STALLS);
    return false;
  }

  #pause({ index }: Seen, why: Pause["why"]): null {
    this.#mark(index, why);
    return null;
  }

  #count({ index, point }: Seen): PointShift | null {
    this.#mark(index, "counts");
    const sinceFirst = this.#isFirstLevel ? index - this.#levelStart!.index : Infinity;
    if (sinceFirst <= LONG_WARM_UP) this.#firstNumbers[sinceFirst] = point.iteration;
    if (this.#restart.counted < 0) this.#restart.counted = index;
    const found = this.#levels.push(index, point.durationMs);
    if (!found) return null;
    const levelStart = this.#levelStart!;
    if (found.isRamp && found.start === this.#underWay) return null;
    const isFirst = this.#isFirstLevel;
    this.#isFirstLevel = false;
    // Slower since a restart: since its first iteration, not since the first that we cared to look at.
    const sinceRestart = found.start === this.#restart.counted && found.after > found.before;
    const start = sinceRestart && this.#restart.at >= 0 ? this.#restart.at : found.start;
    this.#levelStart = { index: start, point };
    const points = start - levelStart.index;
    const iterations = (this.#firstNumbers[points] ?? Infinity) - levelStart.point.iteration;
    const isWarmUp = points <= LONG_WARM_UP && iterations <= LONG_WARM_UP_ITERATIONS;
    if (isFirst && found.after < found.before && isWarmUp) {
      // What becomes faster little by little from the beginning on is getting under way, too, as long as that lasts.
      if (found.isRamp) this.#underWay = start;
      else for (let i = levelStart.index; i < start; i++) this.#mark(i, "warm-up");
      return null;
    }
    return { ...found, start };
  }
}

function remember(list: number[], value: number, most: number): void {
  list.push(value);
  if (list.length > most) list.shift();
}
