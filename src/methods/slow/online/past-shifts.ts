/** How far each rank's lead shifted lately while nothing was wrong: chance that the others at this moment do not show. */
import { logStudent, type Tails } from "../../../maths/shift-odds.ts";
import { MOST_QUIET_BLOCKS } from "./baseline.ts";
import type { Window } from "./windows.ts";

/** What the last blocks saw may be a fault's beginning: learnt after so many quiet blocks. */
const GUARD_BLOCKS = 10;

/** Degrees of freedom that chance may have, and how probable each is before anything was seen. */
const TAILS: Tails = [
  [4, 0.1],
  [8, 0.3],
  [16, 0.3],
  [32, 0.3],
];
/** Tails are learnt of windows of this length, which share no blocks. */
export const TAIL_BLOCKS = 8;
/** Minutes of calm do not tell what happens once a day: no degrees become less probable by a larger factor than e to this. */
const MOST_TOLD = 4;

interface Seen {
  readonly window: Window;
  readonly shift: Float32Array;
  /** Of a window of TAIL_BLOCKS: what grew, in scales of chance. */
  readonly scaled: readonly number[];
}

export class PastShifts {
  /** By the window's length: steps that were learnt, and by place the sum of squares of what grew. */
  readonly #learnt = new Map<number, { steps: number; readonly squares: Float64Array }>();
  #waiting: (readonly Seen[])[] = [];
  /** By TAILS: log likelihood of what was learnt. */
  readonly #likelihood = new Float64Array(TAILS.length);
  #sinceTails = 0;
  #tails = TAILS;

  /** How heavy the tails of chance are, as far as this job has shown. */
  get tails(): Tails {
    return this.#tails;
  }

  /** Steps that were learnt, counted as one where they share blocks, and the mean square of a rank's growths. */
  of(blocks: number, place: number): { readonly worth: number; readonly square: number } {
    const learnt = this.#learnt.get(blocks);
    if (learnt === undefined) return { worth: 0, square: 0 };
    const { steps, squares } = learnt;
    return { worth: steps / blocks, square: squares[place]! / steps };
  }

  /** Shifts of a quiet block, by window and place. */
  add(seen: readonly Seen[]): void {
    this.#waiting.push(seen);
    if (this.#waiting.length > GUARD_BLOCKS) this.#learn(this.#waiting.shift()!);
  }

  /** Something may have begun. */
  doubt(): void {
    this.#waiting = [];
  }

  #learn(seen: readonly Seen[]): void {
    this.#learnTails(seen);
    for (const { window, shift } of seen) {
      let learnt = this.#learnt.get(window.blocks);
      if (learnt === undefined) {
        learnt = { steps: 0, squares: new Float64Array(shift.length) };
        this.#learnt.set(window.blocks, learnt);
      }
      const { squares } = learnt;
      const isFull = learnt.steps === MOST_QUIET_BLOCKS;
      const kept = isFull ? MOST_QUIET_BLOCKS / (MOST_QUIET_BLOCKS + 1) : 1;
      for (let place = 0; place < shift.length; place++) {
        const growth = shift[place]!;
        squares[place] = kept * (squares[place]! + (growth > 0 ? growth * growth : 0));
      }
      if (!isFull) learnt.steps++;
    }
  }

  #learnTails(seen: readonly Seen[]): void {
    if (++this.#sinceTails < TAIL_BLOCKS) return;
    this.#sinceTails = 0;
    const scaled = seen.find(({ window }) => window.blocks === TAIL_BLOCKS)?.scaled ?? [];
    const kept = 1 - TAIL_BLOCKS / MOST_QUIET_BLOCKS;
    for (const [i, [degrees]] of TAILS.entries()) {
      let log = kept * this.#likelihood[i]!;
      for (const growth of scaled) log += logStudent(growth, 1, degrees);
      this.#likelihood[i] = log;
    }
    const top = Math.max(...this.#likelihood);
    const weights = TAILS.map(
      ([, weight], i) => weight * Math.exp(Math.max(-MOST_TOLD, this.#likelihood[i]! - top)),
    );
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    this.#tails = TAILS.map(([degrees], i) => [degrees, weights[i]! / total] as const);
  }
}
