/**
 * Samples of machines as a Parquet file, in the shapes of ./metric-table.ts. The format's directory stands at the end of the file, so all
 * of it is held until then; columns are decoded a row group at a time.
 */
import { errorText } from "../base/errors.ts";
import { count } from "../base/text.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { isBlank } from "./metric-table/cells.ts";
import { cellNumber, cellText, ParquetFile, stampOf } from "./metric-table/parquet-columns.ts";
import { planTable, type TablePlan } from "./metric-table/table-plan.ts";
import { TableSamples } from "./metric-table/table-samples.ts";
import { secondsOf } from "./metric-table/times.ts";
import type { Head, Reader } from "./reader.ts";
import { wholeFile } from "./whole-file.ts";

const FORMAT = "metric-parquet";
const MAX_BYTES = 2 ** 30;
/** Writers make groups of a million rows at most. */
const MAX_GROUP_ROWS = 1 << 25;
const PLANNED_ROWS = 64;
const NAMED_COLUMNS = 6;
const MAGIC = Buffer.from("PAR1");

export const metricParquet: Reader = {
  format: FORMAT,
  sniff: ({ bytes }: Head): boolean => MAGIC.equals(bytes.subarray(0, MAGIC.length)),
  open: (file) => wholeFile(MAX_BYTES, (bytes) => new ParquetReading(file).read(bytes)),
};

class ParquetReading {
  readonly #file: string;
  #hasNoZone = false;
  #badRows = 0;

  constructor(file: string) {
    this.#file = file;
  }

  read(bytes: Buffer<ArrayBuffer> | null): Reading {
    if (bytes === null) return this.#reading("is larger than 1 GiB, which we do not hold");
    try {
      return this.#read(new ParquetFile(bytes));
    } catch (error) {
      const why = errorText(error);
      return this.#reading(`cannot be read: ${why.slice(0, 200)}`);
    }
  }

  #read(parquet: ParquetFile): Reading {
    const names = parquet.columns.map(({ name }) => name);
    const plan = planTable(names, firstRows(parquet, names), this.#file);
    if (plan === null) {
      const some = names.slice(0, NAMED_COLUMNS).join(", ");
      return this.#reading(`its columns (${some}) are not those of a table of samples`);
    }
    const samples = new TableSamples(this.#file, plan);
    this.#hasNoZone = parquet.columns[plan.time]!.isLocal && !plan.isUtc;
    const broken: Defect[] = [];
    for (let group = 0; group < parquet.groups.length; group++) {
      try {
        this.#group(parquet, group, plan, samples);
      } catch (error) {
        const why = errorText(error);
        const what = `row group ${group + 1} of ${parquet.groups.length} cannot be read: ${why.slice(0, 200)}`;
        if (broken.length === 0) broken.push({ file: this.#file, what });
      }
    }
    const records = samples.samples;
    const metrics = samples.finish();
    const reading = this.#reading();
    const defects = [...broken, ...reading.defects, ...samples.defects()];
    return records > 0 ? { ...reading, records, defects, metrics } : { ...reading, defects };
  }

  #group(parquet: ParquetFile, group: number, plan: TablePlan, samples: TableSamples): void {
    const rows = parquet.groups[group]!;
    if (rows > MAX_GROUP_ROWS) throw new Error(`${count(rows, "row")} are too many`);
    const column = (at: number): unknown[] =>
      at < 0 ? [] : parquet.values(group, parquet.columns[at]!.name);
    const machines = column(plan.machine);
    const devices = column(plan.device);
    const times = this.#times(column(plan.time), parquet.columns[plan.time]!.isTime, plan);
    const words = column(plan.metric);
    const valueColumns = plan.metric >= 0 ? [plan.value] : plan.columns.map((at) => at.column);
    const values = valueColumns.map((at) => parquet.numbers(group, parquet.columns[at]!.name));
    for (let i = 0; i < rows; i++) {
      const machine = plan.machine < 0 ? null : cellText(machines[i]);
      const timeS = times[i]!;
      if (!(timeS - timeS === 0) || (machine !== null && isBlank(machine))) {
        this.#badRows++;
        continue;
      }
      samples.row(timeS, machine, plan.device < 0 ? null : cellText(devices[i]));
      const word = plan.metric < 0 ? -1 : samples.metric(cellText(words[i]));
      for (let k = 0; k < values.length; k++) {
        const value = values[k]![i]!;
        if (value - value === 0) samples.add(word < 0 ? k : word, value);
      }
    }
  }

  #times(values: readonly unknown[], isTime: boolean, plan: TablePlan): Float64Array {
    const { timeUnit } = plan;
    const divisor = timeUnit === 0 || timeUnit === 1 ? 0 : Math.round(1 / timeUnit);
    return Float64Array.from(values, (value) => {
      if (value === null || value === undefined) return NaN;
      if (isTime) return Number(value);
      const stamp = stampOf(value);
      if (stamp) {
        if (!stamp.hasZone && !plan.isUtc) this.#hasNoZone = true;
        return stamp.timeS;
      }
      const number = cellNumber(value);
      return divisor > 0 ? number / divisor : secondsOf(number);
    });
  }

  #reading(what?: string): Reading {
    const file = this.#file;
    const defects: Defect[] = what === undefined ? [] : [{ file, what }];
    if (this.#badRows > 0) {
      defects.push({
        file,
        what: `${count(this.#badRows, "row")} left out: without a time or a machine`,
      });
    }
    if (this.#hasNoZone) {
      defects.push({ file, what: "its times name no time zone; they are read as UTC" });
    }
    return { file, format: FORMAT, rank: null, records: 0, defects };
  }
}

function firstRows(parquet: ParquetFile, names: readonly string[]): string[][] {
  const group = parquet.groups.findIndex((rows) => rows > 0);
  if (group < 0) return [];
  const columns = names.map((name) => parquet.values(group, name, PLANNED_ROWS).map(cellText));
  const rows = Math.max(...columns.map((column) => column.length));
  return Array.from({ length: rows }, (_, i) => columns.map((column) => column[i] ?? ""));
}
