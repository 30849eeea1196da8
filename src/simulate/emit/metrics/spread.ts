/**
 * How real series scatter around a level. Uniform, independent noise flatters every method: real machines differ for
 * ever (racks, chips, page cache), wander over minutes, move together with the job, and have heavy tails.
 *
 * Taken from the ASD set (12 servers × 19 metrics, 5-minute samples, 210 series that vary): the changes between
 * samples have a 99.9th percentile of 14 medians (quartiles 7 and 18; a normal distribution has 4.9, Student's t with
 * 3 degrees of freedom 16.9, with 4 11.6), hence t with 4 degrees, which has a closed form, and bursts on top; metrics
 * of load correlate by 0.3 to 0.6 from one sample to the next, which is a time of 4 to 10 minutes, hence 300 s.
 */
import { hash, uniform } from "../../cluster/noise.ts";

/** Standard deviations, each by what it belongs to. */
export interface Spread {
  /** relative: shares of the level; absolute: in its unit; logarithmic: exponents, for what comes in bursts. */
  readonly unit: "relative" | "absolute" | "logarithmic";
  /** Stays with the machine, stays with the device. */
  readonly machine: number;
  readonly device: number;
  /** Wanders over minutes, half of it with the machine. */
  readonly slow: number;
  /** Differs by sample. */
  readonly fast: number;
  /** Wanders over minutes with all machines of the job. */
  readonly common: number;
  /** The machine's part is anything between ± `machine`, not a bell: how full disks are. */
  readonly isUniform?: boolean;
}

/** Factors on the parts of every spread: 0 none, 1 as assumed. */
export interface NoiseLevels {
  readonly offsets: number;
  readonly slow: number;
  readonly fast: number;
  readonly common: number;
  readonly bursts: number;
}

export function noiseLevels(level: number): NoiseLevels {
  return { offsets: level, slow: level, fast: level, common: level, bursts: level };
}

export const NO_SPREAD: Spread = {
  unit: "absolute",
  machine: 0,
  device: 0,
  slow: 0,
  fast: 0,
  common: 0,
};

/** Small enough for a core's first cache. */
const BITS = 11;
const SIZE = 1 << BITS;
const MASK = SIZE - 1;
/** Quantiles of Student's t with 4 degrees of freedom, of variance 1: a random index is a random number. */
const HEAVY = Float64Array.from({ length: SIZE }, (_, i) => {
  const p = (i + 0.5) / SIZE;
  const a = 4 * p * (1 - p);
  const t = 2 * Math.sqrt(Math.max(0, Math.cos(Math.acos(Math.sqrt(a)) / 3) / Math.sqrt(a) - 1));
  return (p < 0.5 ? -t : t) / Math.SQRT2;
});
/** Beyond it a difference would be a defect, and no offset. */
const FARTHEST = 5;
/** Of exponents: twenty times as much is a fault's business. */
const FARTHEST_EXPONENT = 3;

/** Heavy-tailed, mean 0 and variance 1, out of four numbers. */
export function heavy(a: number, b: number, c: number, d: number): number {
  return HEAVY[hash(a, b, c, d) & MASK]!;
}

const WANDER_S = 300;
const BURST_S = 20;
const BURST_SHARE = 0.004;
const BURST_FACTOR = 5;

/** What does not change, as a part of the level or in its unit. */
export function offsetOf(
  spread: Spread,
  levels: NoiseLevels,
  seed: number,
  id: number,
  machine: number,
  owner: number,
): number {
  const bounded = (value: number): number => Math.max(-FARTHEST, Math.min(FARTHEST, value));
  const ofMachine = spread.isUniform
    ? 2 * uniform(seed, machine, id, 0xb0) - 1
    : bounded(heavy(seed, machine, id, 0xb0));
  const ofDevice = spread.device === 0 ? 0 : bounded(heavy(seed, owner, id, 0xb1));
  return levels.offsets * (spread.machine * ofMachine + spread.device * ofDevice);
}

/** A walk that returns to 0 within minutes, by tick. */
export function wander(
  sd: number,
  stepS: number,
  seed: number,
  id: number,
  owner: number,
  out: Float64Array,
): void {
  if (sd === 0) {
    out.fill(0);
    return;
  }
  const stay = Math.exp(-stepS / WANDER_S);
  const shock = sd * Math.sqrt(1 - stay * stay);
  let at = sd * heavy(seed, owner, id, 0x57a7);
  for (let t = 0; t < out.length; t++) {
    at = stay * at + shock * HEAVY[hash(seed, owner, id, t + 0x10000) & MASK]!;
    out[t] = at;
  }
}

/** By tick: how much noisier than usual a machine's metric is; bursts of some seconds (Minder's challenge 4). */
export function bursts(
  level: number,
  stepS: number,
  seed: number,
  id: number,
  machine: number,
  out: Float64Array,
): void {
  out.fill(1);
  if (level === 0) return;
  const slots = Math.ceil((out.length * stepS) / BURST_S);
  for (let slot = 0; slot < slots; slot++) {
    if (uniform(seed, machine, slot, 0x41c + id) >= BURST_SHARE * level) continue;
    const fromS = slot * BURST_S;
    const untilS = fromS + 2 + (hash(seed, machine, slot, 0x41d) % 9);
    for (let t = Math.ceil(fromS / stepS); t * stepS < untilS && t < out.length; t++)
      out[t] = BURST_FACTOR;
  }
}

/** What disturbs one series, by tick; the machine's parts are shared by its devices. */
interface Disturbance {
  readonly spread: Spread;
  readonly levels: NoiseLevels;
  readonly offset: number;
  readonly common: Float64Array;
  readonly machineSlow: Float64Array;
  readonly amplitude: Float64Array;
}

/** Limits and steps of what an exporter shows; a quantum of 0: none. */
export interface Scale {
  readonly least: number;
  readonly most: number;
  readonly quantum: number;
}

/**
 * Fills `out` with what is measured of `clean`. A level of 0 stays 0: what stands still does so exactly. The one hot
 * loop of it all, hence a hash of its own, of which each half serves one part.
 */
export function disturb(
  clean: Float64Array,
  out: Float64Array,
  { spread, levels, offset, common, machineSlow, amplitude }: Disturbance,
  { least, most, quantum }: Scale,
  stepS: number,
  key: number,
): void {
  const stay = Math.exp(-stepS / WANDER_S);
  const slowSd = levels.slow * spread.slow * Math.SQRT1_2;
  const shock = slowSd * Math.sqrt(1 - stay * stay);
  const fast = levels.fast * spread.fast;
  const isRelative = spread.unit === "relative";
  const isAbsolute = spread.unit === "absolute";
  let slow = slowSd * HEAVY[Math.imul(key, 0x9e3779b1) >>> (32 - BITS)]!;
  for (let t = 0; t < out.length; t++) {
    const level = clean[t]!;
    let h = key ^ Math.imul(t + 0x165667b1, 0x9e3779b1);
    h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
    h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
    h ^= h >>> 15;
    slow = stay * slow + shock * HEAVY[h & MASK]!;
    if (level === 0) {
      out[t] = 0;
      continue;
    }
    const deviation =
      offset +
      common[t]! +
      machineSlow[t]! +
      slow +
      fast * amplitude[t]! * HEAVY[(h >>> BITS) & MASK]!;
    let value = isRelative
      ? level * (1 + deviation)
      : isAbsolute
        ? level + deviation
        : level * Math.exp(Math.max(-FARTHEST_EXPONENT, Math.min(FARTHEST_EXPONENT, deviation)));
    if (value < least) value = least;
    else if (value > most) value = most;
    out[t] = quantum === 0 ? value : Math.round(value / quantum) * quantum;
  }
}
