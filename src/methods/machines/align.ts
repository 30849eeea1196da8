/**
 * From raw samples to a fleet: every metric of the catalog that has a source, on a grid of its own sampling interval.
 * Minder aligns and pads with the nearest sample (§4.1); padding hides exactly the machines that died, so here a tick
 * without a sample stays empty.
 */
import { CATALOG, catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import type { CatalogMetric, MetricSource } from "../../model/metric-catalog.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MetricSamples, MetricSet } from "../../model/metrics.ts";
import { median } from "../../maths/robust.ts";
import { linkUsage } from "./link-usage.ts";
import { carryForward, levelRow, rateRow, type Ticks } from "./grid-rows.ts";
import { offClocks } from "./off-clocks.ts";
import { rolesOf, type RoleHints } from "./roles.ts";

const MAX_CELLS = 64_000_000;
const MAX_DEVICES = 250;

/** One metric's samples, with the fleet's machine numbers. */
interface Placed {
  readonly samples: MetricSamples;
  readonly machine: Int32Array;
}

export interface AlignOptions extends RoleHints {
  /** Unix seconds; samples outside are left out. */
  readonly fromS?: number;
  readonly toS?: number;
  /** The job's machines, as the monitoring names them; others are left out. All of them where it is not given. */
  readonly only?: ReadonlySet<string>;
}

export function alignFleet(sets: readonly MetricSet[], options: AlignOptions = {}): Fleet {
  const seen = [...new Set(sets.flatMap((set) => set.machines))].sort();
  const machines = options.only ? seen.filter((machine) => options.only!.has(machine)) : seen;
  const numberOf = new Map(machines.map((machine, m) => [machine, m]));
  const byName = new Map<string, Placed[]>();
  for (const set of sets) {
    const place = Int32Array.from(set.machines, (machine) => numberOf.get(machine) ?? -1);
    for (const samples of set.samples) {
      const list = byName.get(samples.name) ?? [];
      list.push({ samples, machine: samples.machine.map((m) => place[m]!) });
      byName.set(samples.name, list);
    }
  }
  const hardware = hardwareOf(sets, machines);
  const { isOff, missing } = offClocks(machines, [...byName.values()].flat());
  const grids: MetricGrid[] = [];
  for (const metric of CATALOG) {
    const grid = gridOf(metric, byName, machines.length, isOff, options);
    if (grid) grids.push(grid);
  }
  const known = new Set(
    CATALOG.flatMap(({ id, sources }) => [id, ...sources.flatMap((s) => s.names)]),
  );
  for (const name of byName.keys()) {
    if (known.has(name) || catalogMetric(name)) continue;
    const grid = gridOf(unknownMetric(name), byName, machines.length, isOff, options);
    if (grid) grids.push(grid);
  }
  const usage = linkUsage(grids);
  if (usage && !grids.some(({ metric }) => metric === "pcie-usage")) grids.push(usage);
  if (machines.length < seen.length) {
    missing.push(
      `${seen.length - machines.length} of ${seen.length} monitored machines are not the job's and were left out`,
    );
  }
  const { role, roles } = rolesOf(machines, hardware, options);
  return { machines, role, roles, grids, missing };
}

function hardwareOf(sets: readonly MetricSet[], machines: readonly string[]): (string | null)[] {
  const models = new Map<string, string>();
  for (const set of sets) {
    set.machines.forEach((machine, m) => {
      const model = set.hardware[m];
      if (model) models.set(machine, model);
    });
  }
  return machines.map((machine) => models.get(machine) ?? null);
}

/** The first source that has samples; one that has twice the machines of an earlier one is better. */
function gridOf(
  metric: CatalogMetric,
  byName: ReadonlyMap<string, readonly Placed[]>,
  machines: number,
  isOff: Uint8Array,
  options: AlignOptions,
): MetricGrid | null {
  // A table's column carries the catalog's own word.
  const own: MetricSource = { names: [metric.id], how: "level" };
  const alternatives = [own, ...metric.sources]
    .filter(({ names }) => names.every((name) => byName.has(name)))
    .map((source) => ({ source, seen: machinesWith(byName.get(source.names[0]!)!, machines) }));
  let best = alternatives[0];
  for (const other of alternatives) if (best && other.seen > 2 * best.seen) best = other;
  if (!best) return null;
  const placed = best.source.names.map((name) => byName.get(name)!);
  const ticks = ticksOf(placed[0]!, machines, options);
  return ticks && new GridMaker(metric, best.source, ticks, machines, isOff).make(placed);
}

function machinesWith(placed: readonly Placed[], machines: number): number {
  const seen = new Uint8Array(machines);
  for (const { machine } of placed) for (const m of machine) if (m >= 0) seen[m] = 1;
  return seen.reduce((sum, one) => sum + one, 0);
}

/** The sampling interval that was seen, and the time that all series span. */
function ticksOf(
  placed: readonly Placed[],
  machines: number,
  { fromS = -Infinity, toS = Infinity }: AlignOptions,
): Ticks | null {
  const intervals: number[] = [];
  let first = Infinity;
  let last = -Infinity;
  for (const { samples } of placed) {
    const { start, timeS } = samples;
    const every = Math.max(1, Math.floor((start.length - 1) / 500));
    for (let s = 0; s + 1 < start.length; s++) {
      const from = start[s]!;
      const to = start[s + 1]!;
      if (from === to) continue;
      first = Math.min(first, timeS[from]!);
      last = Math.max(last, timeS[to - 1]!);
      if (s % every !== 0 || to - from < 3) continue;
      const gaps = Float64Array.from({ length: Math.min(to - from - 1, 201) }, (_, i) => {
        return timeS[from + i + 1]! - timeS[from + i]!;
      });
      intervals.push(median(gaps));
    }
  }
  first = Math.max(first, fromS);
  last = Math.min(last, toS);
  if (!(last > first) || intervals.length === 0) return null;
  const seenS = tidy(median(intervals));
  const stepS = Math.max(seenS, ((last - first) * machines) / MAX_CELLS);
  const startS = Math.floor(first / stepS) * stepS;
  return { startS, stepS, ticks: Math.floor((last - startS) / stepS) + 1 };
}

/** 14.998 → 15; millisecond data keep their millisecond. */
function tidy(stepS: number): number {
  const unit = stepS >= 0.5 ? 1 : 10 ** Math.floor(Math.log10(stepS));
  const whole = Math.round(stepS / unit) * unit;
  return Math.abs(whole - stepS) < 0.05 * stepS ? whole : stepS;
}

class GridMaker {
  readonly #metric: CatalogMetric;
  readonly #source: MetricSource;
  readonly #ticks: Ticks;
  readonly #machines: number;
  readonly #isOff: Uint8Array;
  readonly #rows: Float64Array[];

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
  }

  make(placed: readonly (readonly Placed[])[]): MetricGrid | null {
    const { ticks } = this.#ticks;
    const devices = [...new Set(placed[0]!.flatMap(({ samples }) => samples.device))];
    const isByDevice =
      this.#metric.perDevice && devices.length > 1 && devices.length <= MAX_DEVICES;
    const deviceOf = new Map(devices.map((device, d) => [device, d]));
    const cells = this.#machines * ticks;
    const mean = new Float32Array(cells).fill(NaN);
    const low = isByDevice ? new Float32Array(cells).fill(NaN) : mean;
    const high = isByDevice ? new Float32Array(cells).fill(NaN) : mean;
    const lowDevice = isByDevice ? new Uint8Array(cells) : null;
    const highDevice = isByDevice ? new Uint8Array(cells) : null;
    const counts = new Uint8Array(cells);
    const others = placed.slice(1).map((list) => seriesByKey(list));
    const { over } = this.#metric;
    for (const { samples, machine } of placed[0]!) {
      for (let s = 0; s < machine.length; s++) {
        const m = machine[s]!;
        if (m < 0 || this.#isOff[m] === 1) continue;
        const row = this.#deviceRow(samples, s, `${m} ${samples.device[s]}`, others);
        if (!row) continue;
        const device = deviceOf.get(samples.device[s]!)!;
        for (let t = 0, at = m * ticks; t < ticks; t++, at++) {
          const value = row[t]!;
          if (value !== value) continue;
          const before = counts[at]!;
          if (before < 255) counts[at] = before + 1;
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
      reporting: isByDevice ? counts : null,
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
      if (how === "used-share") {
        carryForward(second);
        for (let t = 0; t < row.length; t++) row[t] = 1 - row[t]! / second[t]!;
      } else for (let t = 0; t < row.length; t++) row[t]! += second[t]!;
    }
    if (how === "idle-rate") for (let t = 0; t < row.length; t++) row[t] = 1 - row[t]!;
    else if (scale !== 1) for (let t = 0; t < row.length; t++) row[t]! *= scale;
    return row;
  }

  #fill(row: Float64Array, samples: MetricSamples, s: number): void {
    const { how } = this.#source;
    const { start, timeS, value } = samples;
    const counts =
      how === "rate" || how === "idle-rate"
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

const RISES = new WeakMap<MetricSamples, boolean>();

/** Whether a metric behaves as a counter does, whatever its type says: tables often hold ready-made rates. */
function risesOnly(samples: MetricSamples): boolean {
  const known = RISES.get(samples);
  if (known !== undefined) return known;
  const { start, value } = samples;
  const every = Math.max(1, Math.floor((start.length - 1) / 50));
  let falls = 0;
  let steps = 0;
  for (let s = 0; s + 1 < start.length; s += every) {
    for (let i = start[s]! + 1; i < start[s + 1]!; i++) {
      steps++;
      if (value[i]! < value[i - 1]!) falls++;
    }
  }
  // Resets are rare; a rate falls every other time.
  const rises = falls <= 0.1 * steps;
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
