/**
 * How long communication takes once all are there: the least duration among an operator's members is that of the
 * one that arrived last and waited for no other rank. Its change shows the network alone, whichever ranks are late.
 */
import type { Rank } from "../../../model/ids.ts";
import type { Group } from "../../../model/job.ts";
import { growth, least, ratio, standsOut, sums } from "./series.ts";
import type { OperatorSource, Split } from "./source.ts";

/** A group, or the two sides of a pipeline's link, and whether its communication got slow. */
export interface Observation {
  readonly ranks: readonly Rank[];
  readonly isLink: boolean;
  /** Slow over normal iterations, and the difference for one operator in milliseconds. */
  readonly ratio: number;
  readonly growthMs: number;
  readonly isSlow: boolean;
  /** By iteration, normal ones first. */
  readonly floor: Float64Array;
}

/** Transfers vary by some per cent; what matters to a job makes them a good deal longer. */
const SLOW = 1.2;
/** Iterations of each kind that are enough where reading is dear: floors hardly vary. */
const ENOUGH = 3;
/** Deviations of the normal iterations' floors. */
const SIGMAS = 3;
/**
 * Transfers of an iteration that are looked at, the first ones apart from the others: while the pipeline fills,
 * they queue behind what is left of the iteration before; later ones behind gradients.
 */
const TRANSFERS: readonly number[] = [1, 4];
/** Members that stand for a group at first; one of them may come last. */
const WITNESSES = 3;

export class MinimumDurations {
  readonly #source: OperatorSource;
  readonly #split: Split;
  readonly #iterations: readonly number[];
  readonly #known = new Map<string, Observation | null>();

  constructor(source: OperatorSource, split: Split) {
    this.#source = source;
    const { normal, slow, normalMs, slowMs } = split;
    this.#split = {
      normal: normal.slice(0, ENOUGH),
      slow: slow.slice(0, ENOUGH),
      normalMs: normalMs.slice(0, ENOUGH),
      slowMs: slowMs.slice(0, ENOUGH),
    };
    this.#iterations = [...this.#split.normal, ...this.#split.slow];
  }

  get all(): Observation[] {
    return [...this.#known.values()].filter((each) => each !== null);
  }

  /** Whether the group's nth operator may have got slow, as a few members tell: its floor is no longer than theirs. */
  mayBeSlow({ id, ranks }: Group, nth: number): boolean {
    const step = Math.max(1, Math.floor(ranks.length / WITNESSES));
    const some = ranks.filter((_, m) => m % step === 0).slice(0, WITNESSES);
    const durations = this.#source.collectivesOf(some, id, [nth], this.#iterations);
    return ratio(least(durations), this.#split) >= SLOW;
  }

  /** Of the group's nth operators together. */
  group({ id, ranks }: Group, nth: readonly number[]): Observation | null {
    return this.#remember(`group ${id}`, () => {
      const seen = ranks.filter((rank) => this.#source.has(rank));
      // The last to come may be the one that is not seen.
      if (seen.length < ranks.length || seen.length === 0) return null;
      const durations = this.#source.collectivesOf(ranks, id, nth, this.#iterations);
      return this.#observed(ranks, false, sums(least(durations), nth.length));
    });
  }

  /** Neighbours in a pipeline. */
  link(a: Rank, b: Rank): Observation | null {
    const pair = a < b ? ([a, b] as const) : ([b, a] as const);
    return this.#remember(`link ${pair.join()}`, () => {
      if (!pair.every((side) => this.#source.has(side))) return null;
      const nth = TRANSFERS;
      const sides = pair.map((side) =>
        this.#source.transfersOf(side, pair[0], pair[1], nth, this.#iterations),
      );
      // Queueing makes some transfers longer, a slow link all of them: one of the least slowed counts.
      const floor = least(sides);
      const each = nth
        .map((_, n) => this.#observed(pair, true, sums(floor, nth.length, [n])))
        .filter((one) => one !== null)
        .sort((x, y) => x.ratio - y.ratio);
      return each[Math.floor(each.length / 4)] ?? null;
    });
  }

  #remember(key: string, observe: () => Observation | null): Observation | null {
    let known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, (known = observe()));
    return known;
  }

  #observed(ranks: readonly Rank[], isLink: boolean, floor: Float64Array): Observation | null {
    const factor = ratio(floor, this.#split);
    if (Number.isNaN(factor)) return null;
    const growthMs = growth(floor, this.#split);
    const isSlow = factor >= SLOW && standsOut(floor, this.#split, SIGMAS);
    return { ranks, isLink, ratio: factor, growthMs, isSlow, floor };
  }
}
