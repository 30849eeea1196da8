/** One metric's samples, of all machines and devices, made into a grid. */
import type { CatalogMetric, MetricSource } from "../../model/metric-catalog.ts";
import type { MetricGrid } from "../../model/fleet.ts";
import type { MetricSamples } from "../../model/metrics.ts";
import {
  bitsRow,
  carryForward,
  fastestRise,
  gainedRow,
  levelRow,
  newsRow,
  rateRow,
  type Ticks,
} from "./grid-rows.ts";

const MAX_DEVICES = 250;
/** Times the catalog's upper limit, which rates may exceed. */
const IMPOSSIBLE = 20;

/** One metric's samples, with the fleet's machine numbers; -1 for machines that are not the fleet's. */
export interface Placed {
  readonly samples: MetricSamples;
  readonly machine: Int32Array;
}

export class GridMaker {
  readonly #metric: CatalogMetric;
  readonly #source: MetricSource;
  readonly #ticks: Ticks;
  readonly #machines: number;
  readonly #isOff: Uint8Array;
  readonly #rows: Float64Array[];
  /** What can be: a negative power or a usage of 300 % is a broken sensor's. */
  readonly #least: number;
  readonly #most: number;
  /** What a second counts as, where names do not say it (`unitOf`). */
  #unit = 1;

  constructor(
    metric: CatalogMetric,
    source: MetricSource,
    ticks: Ticks,
    machines: number,
    isOff: Uint8Array,
  ) {
    this.#metric = metric;
    this.#source = source;
    this.#ticks = ticks;
    this.#machines = machines;
    this.#isOff = isOff;
    this.#rows = source.names.map(() => new Float64Array(ticks.ticks));
    const isOwnWord = metric.group === "other";
    this.#least = isOwnWord ? -Infinity : metric.bounds[0] - 0.01;
    // Of events there may be any number: a port that waits for credits counts in ticks of nanoseconds.
    const isEvents = source.how === "rate" && metric.unit === "1/s";
    this.#most = isOwnWord || isEvents ? Infinity : IMPOSSIBLE * metric.bounds[1];
  }

  make(placed: readonly (readonly Placed[])[]): MetricGrid | null {
    const { ticks } = this.#ticks;
    const devices = [...new Set(placed[0]!.flatMap(({ samples }) => samples.device))].sort(inOrder);
    const isByDevice =
      this.#metric.perDevice && devices.length > 1 && devices.length <= MAX_DEVICES;
    const deviceOf = new Map(devices.map((device, d) => [device, d]));
    const cells = this.#machines * ticks;
    const mean = new Float32Array(cells).fill(NaN);
    const low = isByDevice ? new Float32Array(cells).fill(NaN) : mean;
    const high = isByDevice ? new Float32Array(cells).fill(NaN) : mean;
    const lowDevice = isByDevice ? new Uint8Array(cells) : null;
    const highDevice = isByDevice ? new Uint8Array(cells) : null;
    const counts = new Uint16Array(cells);
    const others = placed.slice(1).map((list) => seriesByKey(list));
    const { over } = this.#metric;
    this.#unit = unitOf(this.#source, placed[0]!);
    for (const { samples, machine } of placed[0]!) {
      for (let s = 0; s < machine.length; s++) {
        const m = machine[s]!;
        if (m < 0 || this.#isOff[m] === 1) continue;
        const row = this.#deviceRow(samples, s, `${m} ${samples.device[s]}`, others);
        if (!row) continue;
        const device = deviceOf.get(samples.device[s]!)!;
        for (let t = 0, at = m * ticks; t < ticks; t++, at++) {
          const value = row[t]!;
          if (!(value >= this.#least && value <= this.#most)) continue;
          const before = counts[at]!;
          counts[at] = before + 1;
          if (before === 0) mean[at] = value;
          else if (over === "max") mean[at] = Math.max(mean[at]!, value);
          else mean[at]! += value;
          if (!isByDevice) continue;
          if (before === 0 || value < low[at]!) {
            low[at] = value;
            lowDevice![at] = device;
          }
          if (before === 0 || value > high[at]!) {
            high[at] = value;
            highDevice![at] = device;
          }
        }
      }
    }
    let seen = 0;
    for (let at = 0; at < cells; at++) {
      if (counts[at] === 0) continue;
      seen++;
      if (over === "mean") mean[at]! /= counts[at]!;
    }
    if (seen === 0) return null;
    return {
      metric: this.#metric.id,
      source: this.#source.names.join(" + "),
      ...this.#ticks,
      mean,
      low,
      high,
      lowDevice,
      highDevice,
      // Not more than MAX_DEVICES.
      reporting: isByDevice ? Uint8Array.from(counts) : null,
      devices: isByDevice ? devices : [],
      coverage: seen / cells,
    };
  }

  /** One device on the ticks; null where a part of the sum is missing for it. */
  #deviceRow(
    samples: MetricSamples,
    s: number,
    key: string,
    others: readonly ReadonlyMap<string, { samples: MetricSamples; s: number }>[],
  ): Float64Array | null {
    const { how, scale = 1 } = this.#source;
    const rows = this.#rows;
    const row = rows[0]!;
    this.#fill(row, samples, s);
    for (let n = 0; n < others.length; n++) {
      const other = others[n]!.get(key);
      if (!other) return null;
      const second = rows[n + 1]!;
      this.#fill(second, other.samples, other.s);
      if (how === "used-share" || how === "full") {
        carryForward(second);
        for (let t = 0; t < row.length; t++) row[t] = 1 - row[t]! / second[t]!;
        if (how === "full") for (let t = 0; t < row.length; t++) row[t] = fullOf(row[t]!);
      } else for (let t = 0; t < row.length; t++) row[t]! += second[t]!;
    }
    const unit = this.#unit;
    if (how === "idle-rate") for (let t = 0; t < row.length; t++) row[t] = 1 - row[t]! / unit;
    else if (how === "time-share")
      for (let t = 0; t < row.length; t++) row[t] = Math.min(1, row[t]! / unit);
    else if (scale !== 1) for (let t = 0; t < row.length; t++) row[t]! *= scale;
    return row;
  }

  #fill(row: Float64Array, samples: MetricSamples, s: number): void {
    const { how, bits = 0 } = this.#source;
    const { start, timeS, value } = samples;
    if (how === "bits")
      return bitsRow(row, this.#ticks, timeS, value, start[s]!, start[s + 1]!, bits);
    if (how === "gained")
      return gainedRow(row, this.#ticks, timeS, value, start[s]!, start[s + 1]!);
    if (how === "news") return newsRow(row, this.#ticks, timeS, value, start[s]!, start[s + 1]!);
    const counts =
      how === "rate" || how === "idle-rate" || how === "time-share"
        ? samples.type !== "gauge" || risesOnly(samples)
        : how === "level-or-rate" &&
          (samples.type === "counter" || (samples.type === "unknown" && risesOnly(samples)));
    (counts && risesOnly(samples) ? rateRow : levelRow)(
      row,
      this.#ticks,
      timeS,
      value,
      start[s]!,
      start[s + 1]!,
    );
  }
}

/** What is left then is no room for a checkpoint, nor for the system to write what it must. */
const FULL_SHARE = 0.99;

function fullOf(used: number): number {
  return used === used ? (used >= FULL_SHARE ? 1 : 0) : NaN;
}

/** Seconds, milliseconds, microseconds, nanoseconds: DCGM's violations have been both of the last. */
const PARTS = [1, 1e3, 1e6, 1e9];
/** A scrape that is late makes a rate larger than what can be. */
const LATE = 1.1;
const LEAST_RISE_S = 30;

/**
 * What a counter of time gains in a second of it. Of idle time: by core 1, by machine as many as it has cores, which the
 * idlest machine tells. Of a share of time: the smallest part of a second that no series exceeds.
 */
function unitOf({ how }: MetricSource, placed: readonly Placed[]): number {
  if (how !== "idle-rate" && how !== "time-share") return 1;
  const fastest = placed.reduce(
    (most, { samples: { start, timeS, value } }) =>
      Math.max(most, fastestRise(start, timeS, value, LEAST_RISE_S)),
    0,
  );
  if (fastest <= LATE) return 1;
  if (how === "idle-rate") return Math.ceil(fastest);
  return PARTS.find((part) => fastest <= LATE * part) ?? fastest;
}

const RISES = new WeakMap<MetricSamples, boolean>();

/** Whether a metric behaves as a counter does, whatever its type says: tables often hold ready-made rates. */
function risesOnly(samples: MetricSamples): boolean {
  const known = RISES.get(samples);
  if (known !== undefined) return known;
  const { start, value } = samples;
  const every = Math.max(1, Math.floor((start.length - 1) / 50));
  let falls = 0;
  let changes = 0;
  for (let s = 0; s + 1 < start.length; s += every) {
    for (let i = start[s]! + 1; i < start[s + 1]!; i++) {
      // A gauge that is scraped more often than it is measured repeats itself.
      if (value[i] !== value[i - 1]) changes++;
      if (value[i]! < value[i - 1]!) falls++;
    }
  }
  // Resets are rare; a rate falls every other time.
  const rises = falls <= 0.1 * changes;
  RISES.set(samples, rises);
  return rises;
}

function seriesByKey(
  placed: readonly Placed[],
): Map<string, { samples: MetricSamples; s: number }> {
  const byKey = new Map<string, { samples: MetricSamples; s: number }>();
  for (const { samples, machine } of placed) {
    machine.forEach((m, s) => byKey.set(`${m} ${samples.device[s]}`, { samples, s }));
  }
  return byKey;
}

/** "gpu2" before "gpu10", whoever comes first in the data. */
export function inOrder(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
