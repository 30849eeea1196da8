/**
 * Which iterations, and how fast, fall into each sample. Metrics are levels over a second while iterations
 * take a tenth of one or ten, so all that is kept of an iteration is its length and the faults that acted.
 */
import type { IterationTimes, Simulation } from "../../cluster/times.ts";
import { isEnding, severityAt } from "../../cluster/faults.ts";

/** A stretch of time under the same faults. */
export interface Regime {
  /** By fault: its severity, 1 where it does not act. */
  readonly severities: readonly number[];
  /** An iteration in which it was so; 0 for healthy. */
  readonly iteration: number;
  /** Whether the job had stopped. */
  readonly stopped: boolean;
}

/** Part of a sample spent in one regime. */
export interface Part {
  readonly regime: number;
  /** Share of the sample. */
  readonly share: number;
  /** Iterations worked off in it, per second of the whole sample. */
  readonly rate: number;
}

export class Timeline {
  readonly regimes: Regime[] = [];
  readonly #simulation: Simulation;
  readonly #byKey = new Map<string, number>();
  /** Growing columns: where a stretch ends, its regime, and iterations per nanosecond in it. */
  readonly #endNs: number[] = [];
  readonly #regime: number[] = [];
  readonly #pace: number[] = [];
  #usualNs = 1e9;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  add(times: IterationTimes, tailNs: number): void {
    const { iteration, startNs, endNs } = times;
    if (endNs !== Infinity) {
      this.#usualNs = endNs - startNs;
      this.#stretch(endNs, this.#of(iteration, false), 1 / (endNs - startNs));
      return;
    }
    const stopNs = Math.max(startNs, lastEndNs(times));
    // Until then it went on as before.
    if (stopNs > startNs) this.#stretch(stopNs, this.#of(iteration - 1, false), 1 / this.#usualNs);
    this.#stretch(stopNs + tailNs, this.#of(iteration, true), 0);
  }

  get endNs(): number {
    return this.#endNs.at(-1) ?? 0;
  }

  /** The parts of each sample [i, i + 1) · intervalNs. */
  samples(intervalNs: number): Part[][] {
    const count = Math.floor(this.endNs / intervalNs);
    const samples: Part[][] = [];
    let at = 0;
    for (let i = 0; i < count; i++) {
      const parts = new Map<number, { share: number; rate: number }>();
      let fromNs = i * intervalNs;
      const untilNs = fromNs + intervalNs;
      while (fromNs < untilNs) {
        const toNs = Math.min(untilNs, this.#endNs[at]!);
        const part = parts.get(this.#regime[at]!) ?? { share: 0, rate: 0 };
        const share = (toNs - fromNs) / intervalNs;
        part.share += share;
        part.rate += share * this.#pace[at]! * 1e9;
        parts.set(this.#regime[at]!, part);
        fromNs = toNs;
        if (toNs === this.#endNs[at]) at++;
      }
      samples.push([...parts].map(([regime, part]) => ({ regime, ...part })));
    }
    return samples;
  }

  #stretch(endNs: number, regime: number, pace: number): void {
    this.#endNs.push(endNs);
    this.#regime.push(regime);
    this.#pace.push(pace);
  }

  #of(iteration: number, stopped: boolean): number {
    const { spec } = this.#simulation;
    const severities = spec.faults.map((fault) =>
      isEnding(fault, fault.from)
        ? stopped && fault.from === iteration
          ? Infinity
          : 1
        : severityAt(fault, iteration, spec.seed),
    );
    const key = `${severities.join()}/${stopped}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    this.regimes.push({ severities, iteration, stopped });
    this.#byKey.set(key, this.regimes.length - 1);
    return this.regimes.length - 1;
  }
}

/** When the last operator ended that did. */
function lastEndNs({ stages }: IterationTimes): number {
  let last = 0;
  for (const { endNs } of stages)
    for (const end of endNs) if (end > last && end < Infinity) last = end;
  return last;
}
