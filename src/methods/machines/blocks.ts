/**
 * A metric in blocks of some seconds: machines are compared by means over a block, as Minder compares windows of eight
 * samples, and a jump of one sample weighs little. Blocks are set in seconds and follow the sampling interval.
 */
import { median } from "../../maths/robust.ts";
import type { MetricGrid } from "../../model/fleet.ts";
import type { CatalogMetric } from "../../model/metric-catalog.ts";

/** Eight samples of Minder's one-second data, rounded. */
export const BLOCK_S = 10;
const LEAST_BLOCKS = 60;
const MOST_BLOCKS = 4000;
/** Of the usual level: values below it hardly differ. */
const USUAL_SHARE = 0.2;

export interface Scale {
  /** Value of a mean → the scale on which differences are taken. */
  to(value: number): number;
  /** Of a ratio: what is added to values before they are compared, and how large they usually are; null: differences. */
  readonly ratio: { readonly least: number; readonly usual: number } | null;
  /** The least difference on that scale that matters in practice. */
  readonly material: number;
}

export interface Blocks {
  readonly startS: number;
  readonly blockS: number;
  readonly ticksPerBlock: number;
  readonly count: number;
  /** Machine m in block b is at m · count + b, on the metric's scale; NaN where nothing was seen. */
  readonly value: Float32Array;
  /** How many samples a value is made of, where neighbours share them; 1 where they do not. */
  readonly window: number;
}

/** Ratios for what varies in proportion, differences for the rest. */
export function scaleOf(metric: CatalogMetric, grid: MetricGrid): Scale {
  const { offset, material, group } = metric;
  if (offset === null) return { to: (value) => value, ratio: null, material };
  const seen = sampleOf(grid.low);
  if (group !== "other") {
    // Against what the job usually does: while it stands still, a thousandth and two thousandths are the same.
    seen.sort((a, b) => a - b);
    const usual = Math.max(0, seen[Math.floor(0.75 * seen.length)] ?? 0);
    const least = offset + USUAL_SHARE * usual + 1e-9;
    return ratioScale(least, usual, material);
  }
  // A table's own word: its usual size is all that is known of it.
  const usual = median(seen.map(Math.abs));
  if (seen.some((value) => value < 0)) {
    const middle = median(seen);
    const wide = median(seen.map((value) => Math.abs(value - middle)));
    return { to: (value) => value, ratio: null, material: Math.max(3 * wide, 0.25 * usual, 1e-9) };
  }
  return ratioScale(0.05 * usual + 1e-9, usual, material);
}

function ratioScale(least: number, usual: number, material: number): Scale {
  return {
    to: (value) => Math.log(Math.max(value, 0) + least),
    ratio: { least, usual },
    material: Math.log(material),
  };
}

function sampleOf(values: Float32Array): number[] {
  const step = Math.max(1, Math.floor(values.length / 5000));
  const seen: number[] = [];
  for (let i = 0; i < values.length; i += step)
    if (!Number.isNaN(values[i]!)) seen.push(values[i]!);
  return seen;
}

export function blocksOf(
  grid: MetricGrid,
  values: Float32Array,
  scale: Scale,
  blockS = BLOCK_S,
): Blocks {
  const { ticks, stepS, startS } = grid;
  const shortest = blockS === BLOCK_S ? (ticks * stepS) / LEAST_BLOCKS : blockS;
  const wanted = Math.round(Math.min(blockS, shortest) / stepS);
  const ticksPerBlock = Math.max(1, wanted, Math.ceil(ticks / MOST_BLOCKS));
  const count = Math.ceil(ticks / ticksPerBlock);
  const machines = values.length / ticks;
  const value = new Float32Array(machines * count);
  for (let m = 0; m < machines; m++) {
    for (let b = 0; b < count; b++) {
      const from = m * ticks + b * ticksPerBlock;
      const to = Math.min(from + ticksPerBlock, (m + 1) * ticks);
      let sum = 0;
      let seen = 0;
      for (let at = from; at < to; at++) {
        const one = values[at]!;
        if (one === one) {
          sum += one;
          seen++;
        }
      }
      value[m * count + b] = seen === 0 ? NaN : scale.to(sum / seen);
    }
  }
  return { startS, blockS: ticksPerBlock * stepS, ticksPerBlock, count, value, window: 1 };
}

/**
 * For samples that are seldom: at every tick the mean of the `window` samples around it, without those of `isLeftOut`.
 * A single sample of half a minute is noise; eight of them are not, wherever they begin.
 */
export function windowsOf(
  grid: MetricGrid,
  values: Float32Array,
  scale: Scale,
  window: number,
  isLeftOut: Uint8Array,
): Blocks {
  const { ticks, stepS, startS } = grid;
  const machines = values.length / ticks;
  const value = new Float32Array(values.length).fill(NaN);
  const before = window >> 1;
  for (let m = 0; m < machines; m++) {
    let sum = 0;
    let seen = 0;
    const count = (t: number, sign: number): void => {
      if (t < 0 || t >= ticks || isLeftOut[t] === 1) return;
      const one = values[m * ticks + t]!;
      if (one !== one) return;
      sum += sign * one;
      seen += sign;
    };
    for (let t = 0; t < window - before - 1; t++) count(t, 1);
    for (let t = 0; t < ticks; t++) {
      count(t + window - before - 1, 1);
      count(t - before - 1, -1);
      if (2 * seen >= window) value[m * ticks + t] = scale.to(sum / seen);
    }
  }
  return { startS, blockS: stepS, ticksPerBlock: 1, count: ticks, value, window };
}
