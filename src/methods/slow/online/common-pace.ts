/**
 * Iterations of everybody take longer, and nobody leads: the network, storage, or what the job does now. Told only of what has lasted
 * for some seconds and iterations.
 */
import { effectOf, logShiftOdds } from "../../../maths/shift-odds.ts";
import { median } from "../../../maths/robust.ts";
import { errorOf, noiseOf } from "../levels.ts";
import { type Candidate, type Posterior, TEMPER } from "./hypotheses.ts";
import { LEADS } from "./kinds.ts";
import type { KeptBlock } from "./kept-block.ts";
import { PastShifts } from "./past-shifts.ts";
import type { Window } from "./windows.ts";

/** A job becomes slower by itself once in so long. */
const SLOWER_MS = 8 * 3.6e6;
const FEWEST_MS = 3000;
const FEWEST_ITERATIONS = 6;
/** Who has not been found after so many slow blocks does not keep it from being told that iterations take longer. */
const PATIENCE_BLOCKS = 16;
/** Of the growth in the last blocks, how much the whole of a window must show: else it began later. */
const STEADY = 0.75;
/** Logarithms of the iterations' length: what that does from one minute to the next, and what makes a job slow. */
export const USUAL_PACE_CHANCE = 0.05;
const EFFECT = effectOf(0.1, 0.5);

export interface PaceGrowth {
  readonly window: Window;
  readonly growth: number;
  readonly scale: number;
}

export class CommonPace {
  readonly #past = new PastShifts();

  /** How much longer iterations became since each window began, and what that is by chance. */
  growths(windows: readonly Window[], quiet: readonly KeptBlock[]): PaceGrowth[] {
    const logs = Float64Array.from(quiet, ({ pace }) => Math.log(Math.max(1e-12, pace)));
    const usual = median(logs);
    const noise = noiseOf(
      logs.map((log) => log - usual),
      1,
    );
    return windows.map((window) => {
      const growth = usual - Math.log(Math.max(1e-12, window.pace));
      const error = errorOf(noise, 1 / window.blocks + 1 / Math.max(1, quiet.length));
      const { worth, square } = this.#past.of(window.blocks, 0);
      const chance = (USUAL_PACE_CHANCE ** 2 + 2 * worth * square) / (1 + worth);
      return {
        window,
        growth,
        scale: Math.sqrt(Math.max(USUAL_PACE_CHANCE ** 2, chance) + error ** 2),
      };
    });
  }

  /**
   * The likeliest since when, and how probable that is; null for never. `beside`: what else was weighed, and by how much its
   * evidence that iterations grew (by window) falls short of what is known of this job's.
   */
  weigh(
    growths: readonly PaceGrowth[],
    beside: Posterior,
    paceOf: (w: number) => number,
  ): Candidate | null {
    let [total, lasting, most, gain] = [0, 0, -Infinity, 0];
    let since = -1;
    for (const [w, { window, growth, scale }] of growths.entries()) {
      const { from, blocks, spanMs, iterations } = window;
      if (blocks * from.block.lengthMs < FEWEST_MS || iterations < FEWEST_ITERATIONS) continue;
      if (!(growth > Math.max(EFFECT.least, STEADY * growths[0]!.growth))) continue;
      const odds = logShiftOdds(growth, scale, this.#past.tails, EFFECT);
      const log = Math.log(Math.min(0.5, spanMs / SLOWER_MS)) + TEMPER * odds;
      total += Math.exp(log);
      if (blocks >= PATIENCE_BLOCKS) lasting += Math.exp(log);
      gain = Math.max(gain, TEMPER * (odds - paceOf(w)));
      if (log > most) [most, since] = [log, from.number];
    }
    if (since < 0) return null;
    const others = (1 / beside.nothing - 1) * Math.exp(gain);
    const probability = Math.max(total / (1 + total + others), lasting / (1 + lasting));
    return {
      type: "all",
      shape: "lasting",
      kind: LEADS,
      items: [],
      isOne: true,
      since,
      log: most,
      probability,
    };
  }

  learn(growths: readonly PaceGrowth[]): void {
    this.#past.add(
      growths.map(({ window, growth, scale }) => ({
        window,
        shift: Float32Array.of(growth),
        scaled: growth > 0 ? [growth / scale] : [],
      })),
    );
  }

  doubt(): void {
    this.#past.doubt();
  }
}
