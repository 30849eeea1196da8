/**
 * Iterations that a job's own code makes longer: every N-th one exactly, ever since the job is known. Logging, an evaluation
 * or a gathering of metrics does that. A fault begins some time; one that had begun before and comes every N-th iteration
 * exactly cannot be told from a habit, and is taken for one.
 */

/** Iterations that make a habit, and as many in a row that are no longer so end it. */
const PATTERN = 3;
/** The first iterations of a run are long for other reasons. */
const WARM_UP = 2;
/** What a habit costs varies: up to twice as much, down to half. */
const VARIES = 2;
/** Iterations since the first one in which a habit can still be recognised. */
const REMEMBERED = 1000;

interface Habit {
  readonly every: number;
  readonly at: number;
  readonly costMs: number;
  missed: number;
}

export class PeriodicHabits {
  #habits: Habit[] = [];
  /** The first iteration that was seen of the job, and how long it and those after it took. */
  #first = NaN;
  readonly #tookMs: number[] = [];

  /** Whether an iteration is one of those that are always longer, and not much longer than they are. */
  has(iteration: number, ms: number, levelMs: number): boolean {
    this.#remember(iteration, ms);
    const costMs = ms - levelMs;
    let isHabit = false;
    for (const habit of this.#habits) {
      if (!isOf(habit, iteration) || !(costMs <= VARIES * habit.costMs)) continue;
      habit.missed = costMs < habit.costMs / VARIES ? habit.missed + 1 : 0;
      isHabit = true;
    }
    this.#habits = this.#habits.filter(({ missed }) => missed < PATTERN);
    return isHabit;
  }

  /**
   * Of iterations that are slow now and then, ascending, whether the newest is one of a habit. The answer tells which others
   * are; all of them are known from now on.
   */
  learn(
    slow: readonly number[],
    beforeMs: number,
    afterMs: number,
  ): ((iteration: number) => boolean) | null {
    const newest = slow.at(-1)!;
    const costMs = afterMs - beforeMs;
    for (const before of slow.slice(0, -1).toReversed()) {
      const every = newest - before;
      if (!this.#isSinceStart(newest, every, beforeMs + costMs / VARIES)) continue;
      const habit: Habit = { every, at: newest % every, costMs, missed: 0 };
      this.#habits.push(habit);
      return (iteration) => isOf(habit, iteration);
    }
    return null;
  }

  #remember(iteration: number, ms: number): void {
    if (Number.isNaN(this.#first)) this.#first = iteration;
    const at = iteration - this.#first;
    // After a return to a checkpoint what was first stays.
    if (at >= 0 && at < REMEMBERED) this.#tookMs[at] ??= ms;
  }

  #isSinceStart(newest: number, every: number, leastMs: number): boolean {
    let times = 0;
    for (let number = newest; number > this.#first + WARM_UP; number -= every) {
      if (!(this.#tookMs[number - this.#first]! >= leastMs)) return false;
      times++;
    }
    return every > 1 && times >= PATTERN;
  }
}

function isOf({ every, at }: Habit, iteration: number): boolean {
  return iteration % every === at;
}
