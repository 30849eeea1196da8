/** Random numbers by coordinates (cluster/noise.ts), in the shapes that drawing tasks needs. */
import { hash, uniform } from "../../../src/simulate/cluster/noise.ts";

/** A source of numbers for one purpose: the n-th question has always the same answer. */
export class Draw {
  readonly #seed: number;
  readonly #purpose: number;
  readonly #which: number;

  constructor(seed: number, purpose: string, which = 0) {
    this.#seed = seed;
    let code = 0;
    for (let i = 0; i < purpose.length; i++) code = Math.imul(code, 31) + purpose.charCodeAt(i);
    this.#purpose = code;
    this.#which = which;
  }

  unit(n: number): number {
    return uniform(this.#seed, this.#purpose, this.#which, n);
  }

  within(n: number, least: number, most: number): number {
    return least + (most - least) * this.unit(n);
  }

  /** Evenly by order of magnitude. */
  magnitude(n: number, least: number, most: number): number {
    return least * (most / least) ** this.unit(n);
  }

  whole(n: number, below: number): number {
    return hash(this.#seed, this.#purpose, this.#which, n) % Math.max(1, below);
  }

  chance(n: number, share: number): boolean {
    return this.unit(n) < share;
  }

  pick<T>(n: number, list: readonly T[]): T {
    return list[this.whole(n, list.length)]!;
  }

  weighted<T extends string>(n: number, shares: Readonly<Record<T, number>>): T {
    const all = Object.entries(shares) as [T, number][];
    let left = this.unit(n) * all.reduce((sum, [, share]) => sum + share, 0);
    for (const [key, share] of all) if ((left -= share) < 0) return key;
    return all.at(-1)![0];
  }

  /** How many of rare events there are. */
  poisson(n: number, mean: number): number {
    let count = 0;
    let product = this.unit(n);
    for (const limit = Math.exp(-mean); product > limit && count < 1000; count++)
      product *= this.unit(n + 1000 + count);
    return count;
  }
}
