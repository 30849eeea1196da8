/** The iterations of a whole job, one after the other: how long they take, at what level, and which of them are pauses. */
import { median } from "../../../maths/robust.ts";
import { IterationTracker } from "../../../methods/iterations/iteration-tracker.ts";
import type { IterationSeries } from "../../../model/series.ts";
import type { Pace } from "../standstill/standstill-detector.ts";
import { type PastPause, usualPauseMs } from "../standstill/usual-pauses.ts";
import type { WholeIteration } from "./point-table.ts";

/** Iterations that are kept in memory: an hour at one a second. */
const KEPT_ITERATIONS = 4096;
/** Points that a known level stands for. */
const KNOWN_LEVEL = 12;
/** Iterations that tell what one takes just now. */
const LAST_ITERATIONS = 4;
/** Iterations that tell how long one may take. */
const LOOKED_BACK = 512;
/** Pauses that tell whether they recur, each so many times as long as an iteration. */
const MOST_PAUSES = 6;
const LEAST_PAUSE = 3;

export interface JobIteration {
  readonly iteration: number;
  readonly durationMs: number;
  readonly endMs: number;
  /** The tracker's level after it; NaN before it is known. */
  readonly levelMs: number;
  /** The tracker's word, where the level changed. */
  readonly shift: {
    readonly fromIteration: number;
    readonly fromMs: number;
    readonly beforeMs: number;
    readonly afterMs: number;
  } | null;
}

export class JobIterations {
  /** Of those that are kept: number, end (milliseconds since 1970), duration. */
  readonly numbers: number[] = [];
  readonly endsMs: number[] = [];
  readonly durationsMs: number[] = [];
  readonly #source: string;
  readonly #pauses = new Set<number>();
  /** Iterations in which the job stood still with an incident: no pause that would be usual. */
  readonly #disrupted = new Set<number>();
  #tracker: IterationTracker;
  #dropped = 0;
  /** Index of a point for us less its index for the tracker. */
  #ahead = 0;

  constructor(source: string) {
    this.#source = source;
    this.#tracker = this.#newTracker();
  }

  /** So far, those that are no longer kept counted in. */
  get count(): number {
    return this.#dropped + this.numbers.length;
  }

  /** NaN before it is known. */
  get levelMs(): number {
    return this.#tracker.level;
  }

  push({ iteration, durationMs, endMs }: WholeIteration): JobIteration {
    this.numbers.push(iteration);
    this.endsMs.push(endMs);
    this.durationsMs.push(durationMs);
    const shift = this.#tracker.push({ iteration, durationMs, between: 0, batch: NaN });
    let told: JobIteration["shift"] = null;
    if (shift) {
      const at = shift.start + this.#ahead - this.#dropped;
      told = {
        fromIteration: this.numbers[at] ?? iteration,
        fromMs: (this.endsMs[at] ?? endMs) - (this.durationsMs[at] ?? durationMs),
        beforeMs: shift.before,
        afterMs: shift.after,
      };
    }
    const surplus = this.numbers.length - KEPT_ITERATIONS;
    if (surplus > 0) {
      for (const list of [this.numbers, this.endsMs, this.durationsMs]) list.splice(0, surplus);
      this.#dropped += surplus;
    }
    return { iteration, durationMs, endMs, levelMs: this.#tracker.level, shift: told };
  }

  /** From now on this is the usual pace; null: whatever comes is. The tracker would take a slowdown that is over for a level. */
  calm(usualMs: number | null): void {
    this.#tracker = this.#newTracker();
    const known = usualMs === null ? 0 : KNOWN_LEVEL;
    this.#ahead = this.count - known;
    const first = (this.numbers.at(-1) ?? 0) - known + 1;
    for (let k = 0; k < known; k++)
      this.#tracker.push({ iteration: first + k, durationMs: usualMs!, between: 0, batch: NaN });
  }

  isPause(iteration: number): boolean {
    return this.#pauses.has(iteration);
  }

  disrupted(iterations: readonly JobIteration[]): void {
    for (const { iteration } of iterations) this.#disrupted.add(iteration);
    keepLast(this.#disrupted);
  }

  get pace(): Pace {
    const { levelMs, longestMs } = this;
    const next = (this.numbers.at(-1) ?? 0) + 1;
    return { levelMs, longestMs, pauseMs: usualPauseMs(this.#pastPauses(), next) };
  }

  /** Of the last iterations, without those in which the job stood still. */
  get longestMs(): number {
    const from = Math.max(0, this.numbers.length - LOOKED_BACK);
    // What a service before this one knew of its pace counts as well.
    let longest = this.levelMs > 0 ? this.levelMs : 0;
    for (let i = from; i < this.numbers.length; i++)
      if (!this.#pauses.has(this.numbers[i]!) && !this.#disrupted.has(this.numbers[i]!))
        longest = Math.max(longest, this.durationsMs[i]!);
    return longest;
  }

  /** The last iterations that took much longer than others: checkpoints, evaluations, compilations. */
  #pastPauses(): PastPause[] {
    const pauses: PastPause[] = [];
    // The first iteration of a run warms up.
    for (let i = this.numbers.length - 1; i > 0 && pauses.length < MOST_PAUSES; i--) {
      const iteration = this.numbers[i]!;
      if (!this.#pauses.has(iteration) || this.#disrupted.has(iteration)) continue;
      const durationMs = this.durationsMs[i]!;
      if (durationMs > LEAST_PAUSE * this.levelMs) pauses.push({ iteration, durationMs });
    }
    return pauses.reverse();
  }

  /** Index of the first that ended after a moment; the number of those kept where none did. */
  firstAfter(ms: number): number {
    let at = this.endsMs.length;
    // A slowdown began of late.
    while (at > 0 && this.endsMs[at - 1]! > ms) at--;
    return at;
  }

  /** Milliseconds beyond the usual that slow iterations took which ended after a moment. */
  lostMs(usualMs: number, afterMs: number, isSlow: (durationMs: number) => boolean): number {
    let lost = 0;
    for (let i = this.firstAfter(afterMs); i < this.numbers.length; i++) {
      const durationMs = this.durationsMs[i]!;
      if (isSlow(durationMs)) lost += Math.max(0, durationMs - usualMs);
    }
    return lost;
  }

  /** What one takes just now. */
  get lastMs(): number {
    return median(this.durationsMs.slice(-LAST_ITERATIONS));
  }

  series(): IterationSeries {
    const { length } = this.numbers;
    return {
      source: this.#source,
      file: this.#source,
      rank: null,
      basis: "reported",
      iteration: Float64Array.from(this.numbers),
      durationMs: Float64Array.from(this.durationsMs),
      endMs: Float64Array.from(this.endsMs),
      line: new Int32Array(length),
      batch: new Float64Array(length).fill(NaN),
      between: new Uint8Array(length),
    };
  }

  #newTracker(): IterationTracker {
    return new IterationTracker({
      mark: (index, role) => {
        const number = this.numbers[index + this.#ahead - this.#dropped];
        if (number === undefined) return;
        if (role === "counts") this.#pauses.delete(number);
        else this.#pauses.add(number);
        keepLast(this.#pauses);
      },
    });
  }
}

function keepLast(iterations: Set<number>): void {
  for (const oldest of iterations) {
    if (iterations.size <= KEPT_ITERATIONS) return;
    iterations.delete(oldest);
  }
}
