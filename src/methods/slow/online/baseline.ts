/** What is usual: level and noise of each series over the last quiet blocks. */
import { median } from "../../../maths/robust.ts";
import type { KeptBlock } from "./kept-block.ts";
import type { References } from "./references.ts";
import { SortedColumns } from "./sorted-columns.ts";

/** Quiet blocks that are remembered: two minutes of short iterations. */
export const MOST_QUIET_BLOCKS = 240;
/** Noise of a block, share of it: less than this is luck. */
const LEAST_NOISE = 0.01;
/** No series of some dozen blocks shows reliably that neighbours are more alike. */
const MOST_CORRELATED = 0.8;
/** A rest counts for the correlation up to so many deviations: outliers say nothing of it. */
const CLIPPED_SIGMAS = 3;
/** Noise changes slowly: with each block that of one series in so many is worked out again. */
const TURNS = 16;

/** What was usual at some moment. By series unless said otherwise. */
export interface Usual {
  readonly blocks: number;
  readonly level: Float32Array;
  readonly sigma: Float32Array;
  /** Of the variance of a mean, because neighbours are alike. */
  readonly inflation: Float32Array;
  /** By place: the series that agrees with it best; -1 where none is known. */
  readonly surest: Int32Array;
  /** Noise of the surest series of a rank in the middle. */
  readonly pool: number;
  readonly pace: number;
}

export class Baseline {
  readonly #references: References;
  readonly #kind: number;
  /** Oldest first. */
  readonly #blocks: KeptBlock[] = [];
  readonly #values: SortedColumns;
  readonly #sigma: Float32Array;
  readonly #inflation: Float32Array;
  #turn = 0;
  #usual: Usual | null = null;

  /** `kind`: of KeptBlock.apart. */
  constructor(references: References, kind: number) {
    const { count } = references;
    this.#references = references;
    this.#kind = kind;
    this.#values = new SortedColumns(count, MOST_QUIET_BLOCKS);
    this.#sigma = new Float32Array(count);
    this.#inflation = new Float32Array(count);
  }

  get blocks(): readonly KeptBlock[] {
    return this.#blocks;
  }

  /** Later than all that were learnt before. */
  learn(block: KeptBlock): void {
    const gone = this.#blocks.length === MOST_QUIET_BLOCKS ? this.#blocks.shift()! : null;
    this.#blocks.push(block);
    this.#values.move(gone && gone.apart[this.#kind]!, block.apart[this.#kind]!);
    this.#usual = null;
  }

  /** What was learnt of this block and later ones. */
  forgetFrom(number: number): void {
    while (this.#blocks.length > 0 && this.#blocks.at(-1)!.number >= number) {
      this.#values.move(this.#blocks.pop()!.apart[this.#kind]!, null);
      this.#usual = null;
    }
  }

  usual(): Usual {
    this.#usual ??= this.#now();
    return this.#usual;
  }

  #now(): Usual {
    const { count } = this.#references;
    const blocks = this.#blocks.length;
    const level = new Float32Array(count);
    for (let s = 0; s < count; s++) level[s] = this.#values.median(s);
    // Of few blocks each one counts.
    const turns = Math.max(1, Math.min(TURNS, blocks >> 2));
    const first = this.#turn % turns;
    const each = Math.ceil(count / turns);
    this.#turn = first + 1;
    this.#renewNoise(level, Math.min(count, first * each), Math.min(count, (first + 1) * each));
    const [sigma, inflation] = [this.#sigma.slice(), this.#inflation.slice()];
    const { surest, pool } = this.#surest(sigma, inflation);
    const pace = median(this.#blocks.map((block) => block.pace));
    return { blocks, level, sigma, inflation, surest, pool, pace };
  }

  /** Of some series: their noise, and how alike neighbours are. Block by block, because columns lie so. */
  #renewNoise(level: Float32Array, from: number, to: number): void {
    const [sigma, inflation] = [this.#sigma, this.#inflation];
    for (let s = from; s < to; s++)
      sigma[s] = Math.max(LEAST_NOISE, this.#values.deviation(s, level[s]!));
    const own = new Float64Array(to - from);
    const cross = new Float64Array(to - from);
    const last = new Float64Array(to - from);
    for (const block of this.#blocks) {
      const apart = block.apart[this.#kind]!;
      for (let s = from; s < to; s++) {
        const most = CLIPPED_SIGMAS * sigma[s]!;
        const beyond = apart[s]! - level[s]!;
        const rest = Number.isNaN(beyond) ? 0 : Math.max(-most, Math.min(most, beyond));
        own[s - from]! += rest * rest;
        cross[s - from]! += rest * last[s - from]!;
        last[s - from] = rest;
      }
    }
    for (let s = from; s < to; s++) {
      const part = cross[s - from]! / Math.max(1e-12, own[s - from]!);
      const alike = Math.min(MOST_CORRELATED, Math.max(0, part));
      inflation[s] = (1 + alike) / (1 - alike);
    }
  }

  #surest(
    sigma: Float32Array,
    inflation: Float32Array,
  ): { readonly surest: Int32Array; readonly pool: number } {
    const { first } = this.#references;
    const ranks = first.length - 1;
    const surest = new Int32Array(ranks).fill(-1);
    const noise = new Float64Array(ranks);
    let known = 0;
    for (let place = 0; place < ranks; place++) {
      let least = Infinity;
      let leastSigma = Infinity;
      for (let s = first[place]!; s < first[place + 1]!; s++) {
        if (this.#values.known(s) === 0) continue;
        leastSigma = Math.min(leastSigma, sigma[s]!);
        const error = sigma[s]! ** 2 * inflation[s]!;
        if (error < least) [least, surest[place]] = [error, s];
      }
      if (leastSigma < Infinity) noise[known++] = leastSigma;
    }
    return { surest, pool: known === 0 ? LEAST_NOISE : median(noise.subarray(0, known)) };
  }
}
