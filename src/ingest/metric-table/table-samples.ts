/** From a table's rows to series: used for text and for Parquet alike. */
import { getOrInsert } from "../../base/group-by.ts";
import { count } from "../../base/text.ts";
import type { MetricSet } from "../../model/metrics.ts";
import type { Defect } from "../../model/reading.ts";
import { MetricSetBuilder } from "../metrics/metric-set-builder.ts";
import { builderDefects } from "./builder-defects.ts";
import { deviceName } from "./column-names.ts";
import { metricWord, type MetricWord } from "./metric-words.ts";
import { MAX_SERIES } from "./series-index.ts";
import type { TablePlan } from "./table-plan.ts";
import { fixUnits, unitFactor } from "./units.ts";

const UNWANTED = -1;
const TOO_MANY = -2;
const MAX_MACHINE_CHARS = 256;

const PORT = /(?<=\w|\]):\d{2,5}$/;

interface Row {
  readonly machine: string;
  readonly device: string;
  /** By value column, or by metric's number in tables that name it in each row. */
  readonly series: number[];
}

export class TableSamples {
  readonly #file: string;
  readonly #plan: TablePlan;
  readonly #builder = new MetricSetBuilder();
  readonly #rows = new Map<string, Row>();
  /** The same by the names as they are given. */
  readonly #given = new Map<string | null, Map<string | null, Row>>();
  readonly #metrics = new Map<string, number>();
  readonly #words: MetricWord[] = [];
  /** Metrics whose unit is known. */
  readonly #knownUnits = new Set<string>();
  #series = 0;
  #left = 0;
  #tellsNames = false;
  #timeS = NaN;
  #lastMachine: string | null | undefined;
  #lastDevice: string | null | undefined;
  #row: Row = { machine: "", device: "", series: [] };

  constructor(file: string, plan: TablePlan) {
    this.#file = file;
    this.#plan = plan;
    for (const { metric } of plan.columns) this.#words.push(metric);
    for (const { name, hasUnit } of this.#words) if (hasUnit) this.#knownUnits.add(name);
  }

  get samples(): number {
    return this.#builder.counts.samples;
  }

  /** Goes to a row; names as they stand in the table, null where it has no such column. */
  row(timeS: number, machine: string | null, device: string | null): void {
    this.#timeS = timeS;
    if (machine === this.#lastMachine && device === this.#lastDevice) return;
    this.#lastMachine = machine;
    this.#lastDevice = device;
    const devices = getOrInsert(this.#given, machine, () => new Map());
    this.#row = getOrInsert(devices, device, () => this.#rowOf(machine, device));
  }

  #rowOf(given: string | null, device: string | null): Row {
    const name = given === null ? this.#plan.fileMachine : given.replace(PORT, "");
    const machine = name.slice(0, MAX_MACHINE_CHARS);
    const part = device === null ? "" : deviceName(device, this.#plan.deviceKind);
    const key = `${machine}\n${part}`;
    return getOrInsert(this.#rows, key, () => ({ machine, device: part, series: [] }));
  }

  /** A value of the row's; `k` counts the plan's value columns, or is what `metric` gave. */
  add(k: number, value: number): void {
    const series = (this.#row.series[k] ??= this.#newSeries(k));
    if (series === TOO_MANY) this.#left++;
    else if (series !== UNWANTED)
      this.#builder.add(series, this.#timeS, value * this.#words[k]!.scale);
  }

  /** A value whose field names its unit. */
  addWithUnit(k: number, value: number, unit: string): void {
    const { name, unit: wanted, scale } = this.#words[k]!;
    const factor = unitFactor(wanted, unit);
    if (factor !== null) this.#knownUnits.add(name);
    this.add(k, factor === null ? value : (value * factor) / scale);
  }

  /** The number of a metric that a row names. */
  metric(text: string): number {
    let k = this.#metrics.get(text);
    if (k === undefined) {
      const word = metricWord(text);
      k = this.#words.push(word) - 1;
      if (word.hasUnit) this.#knownUnits.add(word.name);
      this.#metrics.set(text, k);
    }
    return k;
  }

  #newSeries(k: number): number {
    if (this.#series >= MAX_SERIES) return TOO_MANY;
    this.#series++;
    const { name, type, device } = this.#words[k]!;
    const column = this.#plan.columns[k];
    if (column?.labels) return this.#builder.labelled(name, column.labels, type);
    return this.#builder.series(
      name,
      (column?.machine ?? this.#row.machine).slice(0, MAX_MACHINE_CHARS),
      column?.device || device || this.#row.device,
      type,
    );
  }

  finish(): MetricSet {
    const set = this.#builder.finish();
    this.#tellsNames = set.links !== undefined;
    fixUnits(set, this.#knownUnits);
    return set;
  }

  /** To be asked after `finish`. */
  defects(): Defect[] {
    const file = this.#file;
    const defects: Defect[] = [];
    const { duplicates } = this.#plan;
    if (duplicates.length > 0) {
      const what = `has several columns "${duplicates[0]!.slice(0, 80)}"; the first is taken`;
      defects.push({ file, what });
    }
    if (this.#builder.counts.samples === 0 && !this.#tellsNames) {
      defects.push({ file, what: "none of its metrics is one that Faultline compares" });
    }
    if (this.#left > 0) {
      defects.push({ file, what: `${count(this.#left, "sample")} left out: too many series` });
    }
    return [...defects, ...builderDefects(file, this.#builder.counts)];
  }
}
