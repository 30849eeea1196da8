/** By how much series grew at a block, and how surely: all of a kind tell together how noisy one of them is. */
import { median } from "../../maths/robust.ts";
import { errorOf, lastingLevel, noiseOf, type Noise } from "./levels.ts";

/** As many blocks as the noise of all series of a kind is worth beside a series' own. */
const POOL_BLOCKS = 6;
/** A kind of fewer series tells nothing of its usual noise. */
const FEWEST_OF_KIND = 3;

/** Of each series: its growth, the growth's standard error, and the part of that which all of its kind have. */
export interface Shifts {
  readonly growth: Float64Array;
  readonly error: Float64Array;
  readonly usualError: Float64Array;
}

/**
 * Growth from in front of a block to behind it; of block 0: the level. Blocks that are NaN are left out; NaN where too few are left:
 * `least` in front and behind.
 */
export function shiftsAt(
  series: Float64Array,
  blocks: number,
  kinds: ArrayLike<number>,
  block: number,
  least = 1,
): Shifts {
  const count = kinds.length;
  const growth = new Float64Array(count).fill(NaN);
  const noises: (Noise | null)[] = [];
  const per = new Float64Array(count);
  const sizes = new Float64Array(count);
  const pools = new Map<number, { sigma: number[]; correlation: number[] }>();
  for (let s = 0; s < count; s++) {
    const all = series.subarray(s * blocks, (s + 1) * blocks);
    const before = all.subarray(0, block).filter((value) => !Number.isNaN(value));
    const behind = all.subarray(block).filter((value) => !Number.isNaN(value));
    noises.push(null);
    if (behind.length < least || (block > 0 && before.length < least)) continue;
    const rests = new Float64Array(before.length + behind.length);
    const [usual, now] = [median(before), median(behind)];
    for (let i = 0; i < before.length; i++) rests[i] = before[i]! - usual;
    for (let i = 0; i < behind.length; i++) rests[before.length + i] = behind[i]! - now;
    const noise = noiseOf(rests, block > 0 ? 2 : 1);
    noises[s] = noise;
    growth[s] = lastingLevel(behind) - (block > 0 ? usual : 0);
    per[s] = 1 / behind.length + (block > 0 ? 1 / before.length : 0);
    sizes[s] = rests.length;
    let pool = pools.get(kinds[s]!);
    if (!pool) pools.set(kinds[s]!, (pool = { sigma: [], correlation: [] }));
    pool.sigma.push(noise.sigma);
    pool.correlation.push(noise.correlation);
  }
  const usual = new Map<number, Noise>();
  for (const [kind, { sigma, correlation }] of pools)
    if (sigma.length >= FEWEST_OF_KIND)
      usual.set(kind, { sigma: median(sigma), correlation: median(correlation) });
  const error = new Float64Array(count).fill(NaN);
  const usualError = new Float64Array(count);
  for (let s = 0; s < count; s++) {
    const own = noises[s];
    if (!own) continue;
    const pooled = usual.get(kinds[s]!);
    if (!pooled) {
      error[s] = errorOf(own, per[s]!);
      continue;
    }
    const weight = POOL_BLOCKS / (POOL_BLOCKS + sizes[s]!);
    const sigma = Math.sqrt(weight * pooled.sigma ** 2 + (1 - weight) * own.sigma ** 2);
    const correlation = weight * pooled.correlation + (1 - weight) * own.correlation;
    error[s] = errorOf({ sigma, correlation }, per[s]!);
    usualError[s] = errorOf(pooled, per[s]!);
  }
  return { growth, error, usualError };
}
