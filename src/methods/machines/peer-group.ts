/** Machines that are compared with each other: their middle, what each differs by as a habit, and how much they stray. */
import { groupBy } from "../../base/group-by.ts";
import { quantilePlace, select } from "../../maths/quickselect.ts";
import { median, TO_DEVIATION } from "../../maths/robust.ts";
import type { Blocks } from "./blocks.ts";
import { standingLimit } from "./limits.ts";
import { oddTwins } from "./pairs.ts";

/** Up to this many, half of the machines may be at fault and the harmful side decides who is (Minder §6.6: two of four). */
export const FEW = 8;
/** A quarter of all distances from the middle are smaller than this share of a normal deviation. */
const QUARTER = 0.3186;
/** Of three or four, the second smallest stands for it, which is more. */
const QUARTER_OF_FOUR = 0.6;
const LEAST_BLOCKS_FOR_THIRDS = 9;
const LEAST_EARLY = 3;
const EARLY_SHARE = 0.08;
/** Of what matters. */
const CALM_SHARE = 0.25;
/** As many as may be at fault together (faulty.ts). */
const OUTER_SHARE = 0.25;
/** Of a normal distribution's distances this share is smaller than so many deviations. */
const STRAY_QUANTILE = 0.85;
const STRAY_DEVIATIONS = 1.44;

export interface PeerOptions {
  readonly role: Int32Array;
  readonly roles: number;
  readonly material: number;
  readonly harm: "low" | "high" | "both";
  readonly onlyChanges: boolean;
  /** On the blocks' scale: larger standing differences are no nature; Infinity where only the machines' spread tells. */
  readonly natural: number;
  /** How values became the blocks' numbers (blocks.ts). */
  readonly ratio: { readonly least: number; readonly usual: number } | null;
  /** Blocks that say nothing about machines: idle, warm-up. */
  readonly isMasked: Uint8Array;
}

export class Group {
  readonly #blocks: Blocks;
  readonly #members: readonly number[];
  readonly #options: PeerOptions;
  readonly #scratch: Float64Array;

  constructor(blocks: Blocks, members: readonly number[], options: PeerOptions) {
    this.#blocks = blocks;
    this.#members = members;
    this.#options = options;
    this.#scratch = new Float64Array(Math.max(members.length, blocks.count));
  }

  fromMiddle(deviation: Float32Array, distance: Float32Array): void {
    const { count, value } = this.#blocks;
    const middle = this.#middles(value);
    for (const m of this.#members) {
      for (let at = m * count, b = 0; b < count; b++, at++) {
        deviation[at] = distance[at] = value[at]! - middle[b]!;
      }
    }
    const standing = this.#members.map((m) => this.#standing(deviation, m));
    const tolerance = this.#tolerance(standing);
    this.#members.forEach((m, i) => {
      const own = Math.max(-tolerance[i]!, Math.min(tolerance[i]!, standing[i]!));
      for (let b = 0; b < count; b++) deviation[m * count + b]! -= own;
    });
  }

  /**
   * For roles of one or two: each against its own past, less what the whole job did. Stages stop from different levels
   * and end at the same one: `distance` tells.
   */
  fromOwnPast(deviation: Float32Array, distance: Float32Array, members: readonly number[]): void {
    const { count, value } = this.#blocks;
    const changes = new Float32Array(value.length).fill(NaN);
    for (const m of this.#members) this.#changes(m, changes);
    const middle = this.#middles(changes);
    const level = this.#middles(value);
    for (const m of members) {
      for (let at = m * count, b = 0; b < count; b++, at++) {
        deviation[at] = changes[at]! - middle[b]!;
        distance[at] = value[at]! - level[b]!;
      }
    }
    const { role, material, onlyChanges } = this.#options;
    if (onlyChanges) return;
    const twins = [...groupBy(members, (m) => role[m]!).values()].filter(
      (list): list is [number, number] => list.length === 2,
    );
    for (const [m, difference] of oddTwins(this.#blocks, twins, distance, material)) {
      for (let at = m * count; at < (m + 1) * count; at++) deviation[at]! += difference;
    }
  }

  /** A machine's own level is 1: stages that do different amounts of work stop alike. */
  #changes(m: number, changes: Float32Array): void {
    const { count, value } = this.#blocks;
    const { ratio } = this.#options;
    const whole = this.#medianOver(value, m, 0, count);
    const first = this.#medianOver(value, m, 0, Math.ceil(count / 3));
    const usual = Number.isNaN(first) ? whole : first;
    const own = ratio ? Math.max(Math.exp(usual) - ratio.least, 0.05 * ratio.usual) : 1;
    const least = ratio ? ratio.least / Math.max(ratio.usual, 1e-9) : 0;
    const relative = (one: number): number =>
      Math.log(Math.max(0, Math.exp(one) - ratio!.least) / own + least + 1e-9);
    for (let b = 0; b < count; b++) {
      const one = value[m * count + b]!;
      changes[m * count + b] = ratio ? relative(one) - relative(usual) : one - usual;
    }
  }

  /** Where few machines have one harmful side, the middle is taken on the other one. */
  #middles(value: Float32Array): Float64Array {
    const { count } = this.#blocks;
    const { harm } = this.#options;
    const few = this.#members.length <= FEW;
    const quantile = few && harm === "low" ? 0.7 : few && harm === "high" ? 0.3 : 0.5;
    const middle = new Float64Array(count);
    for (let b = 0; b < count; b++) {
      const seen = this.#gather(value, b, false);
      middle[b] = seen === 0 ? NaN : this.#quantile(seen, quantile);
    }
    return middle;
  }

  #quantile(seen: number, quantile: number): number {
    const place = quantilePlace(seen, quantile);
    const upper = select(this.#scratch, 0, seen, place);
    if (quantile !== 0.5 || seen % 2 === 1) return upper;
    return (upper + select(this.#scratch, 0, seen, seen / 2 - 1)) / 2;
  }

  #gather(value: Float32Array, b: number, distances: boolean): number {
    const { count } = this.#blocks;
    let seen = 0;
    for (const m of this.#members) {
      const one = value[m * count + b]!;
      if (one === one) this.#scratch[seen++] = distances ? Math.abs(one) : one;
    }
    return seen;
  }

  /**
   * What a machine's difference usually is: that of the first third, before things happen; where that is large and a
   * later one is small, the later one (a machine that recovered, or a jitter at the start).
   */
  #standing(deviation: Float32Array, m: number): number {
    const { count } = this.#blocks;
    const whole = this.#medianOver(deviation, m, 0, count);
    if (count < LEAST_BLOCKS_FOR_THIRDS) return whole;
    const first = this.#medianOver(deviation, m, 0, Math.ceil(count / 3));
    const last = this.#medianOver(deviation, m, Math.floor((2 * count) / 3), count);
    if (Number.isNaN(first)) return Number.isNaN(whole) ? 0 : whole;
    const { material } = this.#options;
    const early = Math.abs(first) < material / 2 ? NaN : this.#early(deviation, m);
    if (Math.abs(early) < Math.abs(first) / 2) return early;
    if (Math.abs(first) < material) return first;
    const calmest = [whole, last].reduce((a, b) => (Math.abs(b) < Math.abs(a) ? b : a));
    return Math.abs(calmest) < Math.abs(first) / 2 ? calmest : first;
  }

  /** At the very start, where all of it says the same: a fault may begin soon after. NaN where it does not. */
  #early(deviation: Float32Array, m: number): number {
    const { count } = this.#blocks;
    const own = deviation.subarray(m * count, (m + 1) * count);
    const seen: number[] = [];
    const wanted = Math.max(LEAST_EARLY, Math.ceil(count * EARLY_SHARE));
    for (let b = 0; b < count && seen.length < wanted; b++)
      if (own[b] === own[b] && this.#options.isMasked[b] === 0) seen.push(own[b]!);
    const middle = median(seen);
    const isCalm = seen.every(
      (one) => Math.abs(one - middle) < CALM_SHARE * this.#options.material,
    );
    return seen.length === wanted && isCalm ? middle : NaN;
  }

  #medianOver(value: Float32Array, m: number, from: number, to: number): number {
    const { count } = this.#blocks;
    let seen = 0;
    for (let b = from; b < to; b++) {
      const one = value[m * count + b]!;
      if (one === one && this.#options.isMasked[b] === 0) this.#scratch[seen++] = one;
    }
    return seen === 0 ? NaN : select(this.#scratch, 0, seen, seen >> 1);
  }

  /** How large a standing difference may be before it is a fault that was there from the beginning. */
  #tolerance(standing: readonly number[]): number[] {
    const { material, role, onlyChanges, natural } = this.#options;
    if (onlyChanges) return standing.map(() => Infinity);
    const strict = standingLimit(role.length);
    if (standing.length > FEW) {
      const spread = TO_DEVIATION * median(standing.map(Math.abs));
      return standing.map(() => Math.min(natural, Math.max(material / 2, strict * spread)));
    }
    // Of few, each is held against the others alone.
    return standing.map((_, i) => {
      const others = standing.filter((__, j) => j !== i).map(Math.abs);
      return Math.min(natural, Math.max(material / 2, strict * TO_DEVIATION * median(others)));
    });
  }

  /**
   * How far the outer quarter is, by block. Where so many stray at once, that is how the metric behaves: a scrape that
   * always falls into the same part of an iteration, or a congestion that spreads. Two culprits are always allowed.
   */
  outer(deviation: Float32Array): Float64Array {
    const { count } = this.#blocks;
    const outer = new Float64Array(count);
    if (this.#members.length <= FEW) return outer;
    for (let b = 0; b < count; b++) {
      const seen = this.#gather(deviation, b, true);
      const place = seen - 1 - Math.max(2, Math.ceil(OUTER_SHARE * seen));
      if (place >= 0) outer[b] = select(this.#scratch, 0, seen, place);
    }
    return outer;
  }

  /** How far the calmer half of the machines stray in the course of time: bursts that hit one machine after another. */
  #restlessness(deviation: Float32Array): number {
    const { count } = this.#blocks;
    const strays = this.#members.map((m) => {
      let seen = 0;
      for (let b = 0; b < count; b++) {
        const one = deviation[m * count + b]!;
        if (one === one && this.#options.isMasked[b] === 0) this.#scratch[seen++] = Math.abs(one);
      }
      return seen === 0 ? NaN : select(this.#scratch, 0, seen, quantilePlace(seen, STRAY_QUANTILE));
    });
    const sorted = strays.filter((one) => one === one).sort((a, b) => a - b);
    return (sorted[(sorted.length - 1) >> 1] ?? 0) / STRAY_DEVIATIONS;
  }

  /** By block; never less than usual, and more while all of them are restless. */
  spreads(deviation: Float32Array): Float64Array {
    const { count, window } = this.#blocks;
    const spread = new Float64Array(count);
    const few = this.#members.length <= FEW;
    for (let b = 0; b < count; b++) {
      const seen = this.#gather(deviation, b, true);
      if (seen === 0) continue;
      spread[b] = few
        ? select(this.#scratch, 0, seen, quantilePlace(seen, 0.25)) /
          (seen <= 4 ? QUARTER_OF_FOUR : QUARTER)
        : TO_DEVIATION * select(this.#scratch, 0, seen, seen >> 1);
    }
    const usual = median(
      [...spread.keys()].filter((b) => this.#options.isMasked[b] === 0).map((b) => spread[b]!),
    );
    // Of few machines a single block says little; of windows that share their samples neighbours say the same.
    const now = few || window > 1 ? smoothed(spread, Math.max(NEIGHBOURS, window)) : spread;
    const least = Math.max(usual, this.#restlessness(deviation));
    return now.map((one) => (one > least ? one : least));
  }
}

const NEIGHBOURS = 3;

function smoothed(spread: Float64Array, around: number): Float64Array {
  return spread.map((_, b) => median(spread.subarray(Math.max(0, b - around), b + around + 1)));
}
