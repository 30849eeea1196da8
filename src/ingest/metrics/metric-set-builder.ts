/**
 * Gathers samples of many series into columns, whatever order they come in. All metric sources write through it, so
 * that machines, devices, stale markers, blanks and duplicates mean the same everywhere.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { NameClaim, NameLink } from "../../model/machine-names.ts";
import { servedBy } from "../../model/metric-catalog.ts";
import type { MetricSamples, MetricSet, MetricType } from "../../model/metrics.ts";
import { ascending, type Columns } from "./ascending.ts";
import {
  BY_UUID,
  claimsOfLabels,
  deviceOfLabels,
  isInfo,
  isWanted,
  linkOfLabels,
  machineOfLabels,
  numberedGpu,
} from "./metric-labels.ts";
import { type Place, SampleRuns } from "./sample-runs.ts";

export { deviceOfLabels, isWanted, machineOfLabels } from "./metric-labels.ts";

/**
 * DCGM prints what it does not know as 2^47 and a little more (floats) or 2^63 - 16 and more (integers). A gauge is never
 * so large; a counter of bytes may pass the first of them.
 */
const LEAST_BLANK = 1.4e14;
const LEAST_INTEGER_BLANK = 9.2e18;
const MAX_SAMPLES = 120_000_000;

/** Of a machine: sixteen GPUs, their pods and some names. */
const MOST_CLAIMS = 200;

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
  firstS: number;
  lastS: number;
  /** Whether the samples came in the order of time, each time once; nearly always. */
  isAscending: boolean;
}

/** One device's series of one metric, placed in the metric's columns. */
interface Key {
  readonly machine: number;
  readonly device: string;
  readonly series: number[];
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
  readonly #leastBlanks: number[] = [];
  readonly #nameIds = new Map<string, number>();
  readonly #machines: string[] = [];
  readonly #machineIds = new Map<string, number>();
  readonly #hardware: (string | null)[] = [];
  readonly #series: Series[] = [];
  readonly #dropped = new Set<string>();
  /** By machine and "label value"; made only for sources that have labels. */
  readonly #claims: Map<string, NameClaim>[] = [];
  readonly #links = new Map<string, NameLink>();
  /** UUID → "gpu3", where an info metric tells. */
  readonly #gpuOf = new Map<string, string>();
  readonly #runs = new SampleRuns();

  /** A new series of a machine's device. The same device may have several, one after the other (a restarted pod). */
  series(name: string, machine: string, device: string, type: MetricType = "unknown"): number {
    const n = this.#nameId(name, type);
    let m = this.#machineIds.get(machine);
    if (m === undefined) {
      m = this.#machines.push(machine) - 1;
      this.#machineIds.set(machine, m);
      this.#hardware.push(null);
      this.#claims.push(new Map());
    }
    const bounds = { firstS: Infinity, lastS: -Infinity, isAscending: true };
    return this.#series.push({ name: n, machine: m, device, samples: 0, ...bounds }) - 1;
  }

  /** The same out of an exporter's labels; -1 where the catalog does not want it or no label names a machine. */
  labelled(
    name: string,
    labels: ReadonlyMap<string, string>,
    type: MetricType = "unknown",
  ): number {
    if (isInfo(name)) {
      const numbered = numberedGpu(name, labels);
      if (numbered) this.#gpuOf.set(numbered.uuid, numbered.gpu);
      const link = linkOfLabels(name, labels);
      if (link) this.#links.set(`${link.names.join(" ")} ${link.pod}`, link);
      return -1;
    }
    if (!isWanted(name, labels)) return -1;
    const machine = machineOfLabels(labels);
    if (machine === null) return -1;
    const series = this.series(name, machine, deviceOfLabels(labels), type);
    const claims = this.#claims[this.#series[series]!.machine]!;
    for (const claim of claimsOfLabels(labels, machine)) {
      const key = `${claim.label} ${claim.value}`;
      if (claims.size < MOST_CLAIMS && !claims.has(key)) claims.set(key, claim);
    }
    const model = labels.get("modelName") ?? labels.get("model_name");
    if (model) this.#hardware[this.#series[series]!.machine] ??= model;
    return series;
  }

  add(series: number, timeS: number, value: number): void {
    const of = this.#series[series]!;
    if (!this.#isKept(timeS, value, this.#leastBlanks[of.name]!)) return;
    this.#runs.add(series, timeS, value);
    note(of, timeS);
    this.counts.samples++;
  }

  /** The first `count` samples of two columns, which stay the caller's. */
  addMany(series: number, timeS: Float64Array, value: Float64Array, count: number): void {
    const of = this.#series[series]!;
    const leastBlank = this.#leastBlanks[of.name]!;
    let from = 0;
    for (let i = 0; i <= count; i++) {
      if (i < count && this.#isKept(timeS[i]!, value[i]!, leastBlank)) {
        note(of, timeS[i]!);
        this.counts.samples++;
        continue;
      }
      if (i > from) this.#runs.addMany(series, timeS, value, from, i);
      from = i + 1;
    }
  }

  #isKept(timeS: number, value: number, leastBlank: number): boolean {
    if (!(value - value === 0) || !(timeS - timeS === 0)) this.counts.notNumbers++;
    else if (value >= leastBlank) this.counts.blanks++;
    else if (this.counts.samples >= MAX_SAMPLES) this.counts.tooMany++;
    else return true;
    return false;
  }

  /** The type that a later line or the server's metadata tells. */
  setType(name: string, type: MetricType): void {
    const id = this.#nameIds.get(name);
    if (id !== undefined) this.#setType(id, type);
  }

  #setType(id: number, type: MetricType): void {
    this.#types[id] = type;
    const isDcgm = this.#names[id]!.startsWith("DCGM_");
    const maybeCounter = type === "counter" || (type === "unknown" && isCounted(this.#names[id]!));
    const least = maybeCounter ? LEAST_INTEGER_BLANK : LEAST_BLANK;
    this.#leastBlanks[id] = isDcgm ? least : Infinity;
  }

  /** Leaves out all of a metric that did not come as a whole: machines without samples would look dead. */
  drop(name: string): void {
    this.#dropped.add(name);
  }

  isDropped(name: string): boolean {
    return this.#dropped.has(name);
  }

  #nameId(name: string, type: MetricType): number {
    let id = this.#nameIds.get(name);
    if (id === undefined) {
      id = this.#names.push(name) - 1;
      this.#setType(id, type);
      this.#nameIds.set(name, id);
    } else if (this.#types[id] === "unknown") this.#setType(id, type);
    return id;
  }

  /** Empties the builder. */
  finish(): MetricSet {
    const sorted = [...this.#machines].sort();
    const placeOf = new Map(sorted.map((machine, i) => [machine, i]));
    const place = Int32Array.from(this.#machines, (machine) => placeOf.get(machine)!);
    const hardware = Array.from<string | null>({ length: sorted.length }).fill(null);
    this.#hardware.forEach((model, m) => (hardware[place[m]!] = model));
    const keys = this.#keys(place);
    const places = Array.from<Place | null>({ length: this.#series.length }).fill(null);
    const columns = keys.map((list) => this.#columnsOf(list, places));
    this.#runs.moveTo(places);
    const samples = columns.map((held, n) => this.#metric(n, keys[n]!, held));
    const claims = sorted.map((): readonly NameClaim[] => []);
    this.#claims.forEach((own, m) => (claims[place[m]!] = [...own.values()]));
    return {
      machines: sorted,
      hardware,
      samples: samples.filter(({ start }) => start.length > 1),
      ...(claims.some((own) => own.length > 0) ? { claims } : {}),
      ...(this.#links.size > 0 ? { links: [...this.#links.values()] } : {}),
    };
  }

  /** By name: the devices, sorted, each with its series in the order of time and none that says the same again. */
  #keys(place: Int32Array): Key[][] {
    const byName = this.#names.map(() => new Map<string, Key>());
    const known = this.#devicesByUuid();
    this.#series.forEach(({ name, machine, device: given, samples }, id) => {
      if (samples === 0 || this.#dropped.has(this.#names[name]!)) return;
      const device = known.get(`${machine} ${given}`) ?? given;
      const found = byName[name]!;
      const text = `${machine} ${device}`;
      const before = found.get(text);
      if (before) before.series.push(id);
      else found.set(text, { machine: place[machine]!, device, series: [id] });
    });
    return byName.map((found) =>
      [...found.values()]
        .sort((a, b) => a.machine - b.machine || compareDevices(a.device, b.device))
        .map((key) => ({ ...key, series: this.#notDuplicates(key.series) })),
    );
  }

  /**
   * GPUs that are known by UUID alone get names that machines share: their number where an info metric tells it, else
   * their place in the order of the machine's UUIDs.
   */
  #devicesByUuid(): Map<string, string> {
    const uuids = new Map<number, Set<string>>();
    for (const { machine, device } of this.#series) {
      if (!device.startsWith(BY_UUID)) continue;
      getOrInsert(uuids, machine, () => new Set()).add(device);
    }
    const names = new Map<string, string>();
    for (const [machine, own] of uuids) {
      [...own].sort().forEach((device, k) => {
        const number = this.#gpuOf.get(device.slice(BY_UUID.length));
        names.set(`${machine} ${device}`, number ?? `gpu#${k + 1}`);
      });
    }
    return names;
  }

  #columnsOf(keys: readonly Key[], places: (Place | null)[]): Columns {
    const start = new Uint32Array(keys.length + 1);
    keys.forEach(({ series }, k) => {
      start[k + 1] = series.reduce((sum, id) => sum + this.#series[id]!.samples, start[k]!);
    });
    const timeS = new Float64Array(start[keys.length]!);
    const value = new Float64Array(start[keys.length]!);
    keys.forEach(({ series }, k) => {
      let at = start[k]!;
      for (const id of series) {
        places[id] = { timeS, value, at };
        at += this.#series[id]!.samples;
      }
    });
    return { start, timeS, value };
  }

  #metric(name: number, keys: readonly Key[], columns: Columns): MetricSamples {
    let { start, timeS, value } = columns;
    if (keys.some(({ series }) => series.some((id) => !this.#series[id]!.isAscending))) {
      const kept = ascending(columns);
      this.counts.repeated += timeS.length - kept.timeS.length;
      ({ start, timeS, value } = kept);
    }
    return {
      name: this.#names[name]!,
      type: this.#types[name]!,
      machine: Int32Array.from(keys, ({ machine }) => machine),
      device: keys.map(({ device }) => device),
      start,
      timeS,
      value,
    };
  }

  /** In the order of time, without those that overlap a longer one: a second replica, or an exporter scraped twice. */
  #notDuplicates(ids: number[]): number[] {
    if (ids.length === 1) return ids;
    const series = this.#series;
    const kept: number[] = [];
    for (const id of ids.toSorted((a, b) => series[b]!.samples - series[a]!.samples)) {
      const { firstS, lastS } = series[id]!;
      const overlaps = kept.some(
        (other) => series[other]!.firstS <= lastS && firstS <= series[other]!.lastS,
      );
      if (overlaps) this.counts.duplicateSeries++;
      else kept.push(id);
    }
    return kept.sort((a, b) => series[a]!.firstS - series[b]!.firstS);
  }
}

function note(series: Series, timeS: number): void {
  series.samples++;
  if (timeS > series.lastS) series.lastS = timeS;
  else series.isAscending = false;
  if (timeS < series.firstS) series.firstS = timeS;
}

/** "gpu2" before "gpu10". */
function compareDevices(a: string, b: string): number {
  const [, aWord, aNumber] = /^(.*?)(\d*)$/.exec(a)!;
  const [, bWord, bNumber] = /^(.*?)(\d*)$/.exec(b)!;
  if (aWord !== bWord) return aWord! < bWord! ? -1 : 1;
  return Number(aNumber) - Number(bNumber);
}

/** Whether some version of the exporter counts it up. */
function isCounted(name: string): boolean {
  return servedBy(name).some(({ source: { how } }) => how === "rate" || how === "level-or-rate");
}
