/**
 * Gathers samples of many series into columns, whatever order they come in. All metric sources write through it, so
 * that machines, devices, stale markers, blanks and duplicates mean the same everywhere.
 */
import { groupBy } from "../../base/group-by.ts";
import { servedBy } from "../../model/metric-catalog.ts";
import type { MetricSamples, MetricSet, MetricType } from "../../model/metrics.ts";

/** DCGM prints what it does not know as 2^47 and more (floats) or 2^63 - 16 and more (integers). */
const LEAST_BLANK = 1.4e14;
const BLOCK = 1 << 16;
export const MAX_SAMPLES = 120_000_000;

export interface BuilderCounts {
  samples: number;
  /** Stale markers, NaN, infinities. */
  notNumbers: number;
  blanks: number;
  /** Samples of a time that the series already had. */
  repeated: number;
  /** Series that say of a device what another one already says at the same time. */
  duplicateSeries: number;
  /** Samples beyond MAX_SAMPLES. */
  tooMany: number;
}

interface Series {
  readonly name: number;
  readonly machine: number;
  readonly device: string;
  samples: number;
}

/** Labels that name the machine, the best first (dcgm-exporter renamed Hostname in May 2026). */
const MACHINE_LABELS = ["hostname", "Hostname", "node", "nodename", "machine", "host", "instance"];

/** "node0007.cluster.local:9100" → "node0007.cluster.local"; "[::1]:9100" → "[::1]". */
export function machineOfLabels(labels: ReadonlyMap<string, string>): string | null {
  for (const label of MACHINE_LABELS) {
    const value = labels.get(label);
    if (value !== undefined && value !== "") return value.replace(/(?<=[^:]|\]):\d{1,5}$/, "");
  }
  return null;
}

/** What part of the machine a series speaks of. */
export function deviceOfLabels(labels: ReadonlyMap<string, string>): string {
  const gpu = labels.get("gpu") ?? labels.get("minor_number");
  if (gpu !== undefined && gpu !== "") return `gpu${gpu}`;
  const cpu = labels.get("cpu");
  if (cpu !== undefined) return `cpu${cpu}`;
  const mount = labels.get("mountpoint");
  if (mount !== undefined) return mount;
  const device = labels.get("device") ?? labels.get("nic") ?? "";
  const port = labels.get("port");
  return port === undefined || port === "1" || port === "" ? device : `${device}/${port}`;
}

/** Whether the catalog wants a series with these labels under this name. */
export function isWanted(name: string, labels: ReadonlyMap<string, string>): boolean {
  return servedBy(name).some(({ source: { match = {}, exclude = {} } }) => {
    for (const label in match) if (labels.get(label) !== match[label]) return false;
    for (const label in exclude) {
      const value = labels.get(label);
      const found = value === undefined ? null : exclude[label]!.exec(value);
      if (found && found.index === 0 && found[0].length === value!.length) return false;
    }
    return true;
  });
}

export class MetricSetBuilder {
  readonly counts: BuilderCounts = {
    samples: 0,
    notNumbers: 0,
    blanks: 0,
    repeated: 0,
    duplicateSeries: 0,
    tooMany: 0,
  };
  readonly #names: string[] = [];
  readonly #types: MetricType[] = [];
  readonly #nameIds = new Map<string, number>();
  readonly #machines: string[] = [];
  readonly #machineIds = new Map<string, number>();
  readonly #hardware: (string | null)[] = [];
  readonly #series: Series[] = [];
  /** Blocks of equal length; the last is filled up to #used. */
  readonly #of: Int32Array[] = [];
  readonly #timeS: Float64Array[] = [];
  readonly #value: Float64Array[] = [];
  #used = BLOCK;

  /** A new series of a machine's device. The same device may have several, one after the other (a restarted pod). */
  series(name: string, machine: string, device: string, type: MetricType = "unknown"): number {
    const n = this.#nameId(name, type);
    let m = this.#machineIds.get(machine);
    if (m === undefined) {
      m = this.#machines.push(machine) - 1;
      this.#machineIds.set(machine, m);
      this.#hardware.push(null);
    }
    return this.#series.push({ name: n, machine: m, device, samples: 0 }) - 1;
  }

  /** The same out of an exporter's labels; -1 where the catalog does not want it or no label names a machine. */
  labelled(
    name: string,
    labels: ReadonlyMap<string, string>,
    type: MetricType = "unknown",
  ): number {
    if (!isWanted(name, labels)) return -1;
    const machine = machineOfLabels(labels);
    if (machine === null) return -1;
    const series = this.series(name, machine, deviceOfLabels(labels), type);
    const model = labels.get("modelName") ?? labels.get("model_name");
    if (model) this.#hardware[this.#series[series]!.machine] ??= model;
    return series;
  }

  add(series: number, timeS: number, value: number): void {
    if (!(value - value === 0) || !(timeS - timeS === 0)) {
      this.counts.notNumbers++;
      return;
    }
    const of = this.#series[series]!;
    if (
      value >= LEAST_BLANK &&
      this.#types[of.name] !== "counter" &&
      this.#names[of.name]!.startsWith("DCGM_")
    ) {
      this.counts.blanks++;
      return;
    }
    if (this.counts.samples >= MAX_SAMPLES) {
      this.counts.tooMany++;
      return;
    }
    if (this.#used === BLOCK) {
      this.#of.push(new Int32Array(BLOCK));
      this.#timeS.push(new Float64Array(BLOCK));
      this.#value.push(new Float64Array(BLOCK));
      this.#used = 0;
    }
    const block = this.#of.length - 1;
    this.#of[block]![this.#used] = series;
    this.#timeS[block]![this.#used] = timeS;
    this.#value[block]![this.#used++] = value;
    this.counts.samples++;
    of.samples++;
  }

  /** The type that a later line or the server's metadata tells. */
  setType(name: string, type: MetricType): void {
    const id = this.#nameIds.get(name);
    if (id !== undefined) this.#types[id] = type;
  }

  #nameId(name: string, type: MetricType): number {
    let id = this.#nameIds.get(name);
    if (id === undefined) {
      id = this.#names.push(name) - 1;
      this.#types.push(type);
      this.#nameIds.set(name, id);
    } else if (this.#types[id] === "unknown") this.#types[id] = type;
    return id;
  }

  /** Empties the builder. */
  finish(): MetricSet {
    const sorted = [...this.#machines].sort();
    const placeOf = new Map(sorted.map((machine, i) => [machine, i]));
    const place = Int32Array.from(this.#machines, (machine) => placeOf.get(machine)!);
    const hardware = Array.from<string | null>({ length: sorted.length }).fill(null);
    this.#hardware.forEach((model, m) => (hardware[place[m]!] = model));
    const columns = this.#bySeries();
    const bySeries = groupBy(
      this.#series
        .map((series, id) => ({ ...series, id, machine: place[series.machine]! }))
        .filter((series) => series.samples > 0),
      (series) => series.name,
    );
    const samples = this.#names.map((name, n) =>
      this.#metric(name, this.#types[n]!, bySeries.get(n) ?? [], columns),
    );
    return { machines: sorted, hardware, samples: samples.filter(({ start }) => start.length > 1) };
  }

  /** Counting sort by series; within one, by time. */
  #bySeries(): { start: Uint32Array; timeS: Float64Array; value: Float64Array } {
    const start = new Uint32Array(this.#series.length + 1);
    this.#series.forEach((series, id) => (start[id + 1] = start[id]! + series.samples));
    const total = this.counts.samples;
    const timeS = new Float64Array(total);
    const value = new Float64Array(total);
    const next = start.slice();
    let left = total;
    for (let block = 0; block < this.#of.length; block++) {
      const of = this.#of[block]!;
      const t = this.#timeS[block]!;
      const v = this.#value[block]!;
      const used = Math.min(left, BLOCK);
      for (let i = 0; i < used; i++) {
        const at = next[of[i]!]!++;
        timeS[at] = t[i]!;
        value[at] = v[i]!;
      }
      left -= used;
      this.#of[block] = this.#timeS[block] = this.#value[block] = undefined as never;
    }
    this.#of.length = this.#timeS.length = this.#value.length = 0;
    this.#used = BLOCK;
    for (let id = 0; id < this.#series.length; id++) {
      sortByTime(timeS, value, start[id]!, start[id + 1]!);
    }
    return { start, timeS, value };
  }

  #metric(
    name: string,
    type: MetricType,
    series: readonly (Series & { id: number })[],
    columns: { start: Uint32Array; timeS: Float64Array; value: Float64Array },
  ): MetricSamples {
    const byDevice = new Map<string, number[]>();
    for (const { machine, device, id } of series) {
      const key = `${machine} ${device}`;
      const known = byDevice.get(key);
      if (known) known.push(id);
      else byDevice.set(key, [id]);
    }
    const keys = [...byDevice].map(([key, ids]) => {
      const space = key.indexOf(" ");
      return { machine: Number(key.slice(0, space)), device: key.slice(space + 1), ids };
    });
    keys.sort((a, b) => a.machine - b.machine || compareDevices(a.device, b.device));
    const total = series.reduce((sum, { samples }) => sum + samples, 0);
    const start = new Uint32Array(keys.length + 1);
    const timeS = new Float64Array(total);
    const value = new Float64Array(total);
    let at = 0;
    keys.forEach(({ ids }, k) => {
      start[k] = at;
      for (const id of this.#notDuplicates(ids, columns)) {
        for (let i = columns.start[id]!; i < columns.start[id + 1]!; i++) {
          if (at > start[k] && columns.timeS[i]! <= timeS[at - 1]!) {
            this.counts.repeated++;
            continue;
          }
          timeS[at] = columns.timeS[i]!;
          value[at++] = columns.value[i]!;
        }
      }
      start[k + 1] = at;
    });
    return {
      name,
      type,
      machine: Int32Array.from(keys, ({ machine }) => machine),
      device: keys.map(({ device }) => device),
      start,
      timeS: at === total ? timeS : timeS.slice(0, at),
      value: at === total ? value : value.slice(0, at),
    };
  }

  /** In the order of time, without those that overlap a longer one: a second replica, or an exporter scraped twice. */
  #notDuplicates(
    ids: readonly number[],
    { start, timeS }: { start: Uint32Array; timeS: Float64Array },
  ): readonly number[] {
    if (ids.length === 1) return ids;
    const kept: number[] = [];
    for (const id of [...ids].sort((a, b) => this.#series[b]!.samples - this.#series[a]!.samples)) {
      const from = timeS[start[id]!]!;
      const to = timeS[start[id + 1]! - 1]!;
      const overlaps = kept.some(
        (other) => timeS[start[other]!]! <= to && from <= timeS[start[other + 1]! - 1]!,
      );
      if (overlaps) this.counts.duplicateSeries++;
      else kept.push(id);
    }
    return kept.sort((a, b) => timeS[start[a]!]! - timeS[start[b]!]!);
  }
}

/** "gpu2" before "gpu10". */
function compareDevices(a: string, b: string): number {
  const [, aWord, aNumber] = /^(.*?)(\d*)$/.exec(a)!;
  const [, bWord, bNumber] = /^(.*?)(\d*)$/.exec(b)!;
  if (aWord !== bWord) return aWord! < bWord! ? -1 : 1;
  return Number(aNumber) - Number(bNumber);
}

/** Nearly always sorted already. */
function sortByTime(timeS: Float64Array, value: Float64Array, from: number, to: number): void {
  let isSorted = true;
  for (let i = from + 1; i < to && isSorted; i++) isSorted = timeS[i]! >= timeS[i - 1]!;
  if (isSorted) return;
  const order = Array.from({ length: to - from }, (_, i) => from + i).sort(
    (a, b) => timeS[a]! - timeS[b]! || a - b,
  );
  const times = order.map((i) => timeS[i]!);
  const values = order.map((i) => value[i]!);
  times.forEach((time, i) => (timeS[from + i] = time));
  values.forEach((held, i) => (value[from + i] = held));
}
