/** Rows of CSV and TSV: a record a line, fields found in the bytes, strings made of those that are no numbers. */
import { count } from "../../base/text.ts";
import type { Defect, Reading } from "../../model/reading.ts";
import type { Sink } from "../reader.ts";
import { ByteLines } from "./byte-lines.ts";
import { byteNumber, NO_NUMBER } from "./byte-number.ts";
import { decimalComma, isBlank, stateNumber, withUnit } from "./cells.ts";
import { delimiterOf, Fields, isPreamble, textsOf } from "./fields.ts";
import { planTable, type TablePlan } from "./table-plan.ts";
import { TableSamples } from "./table-samples.ts";
import { parseStamp, secondsOf } from "./times.ts";
import { SeriesIndex } from "./series-index.ts";

/** Only hostile tables have more. */
const MAX_TEXTS = 1 << 20;

export const METRIC_TABLE = "metric-table";
/** A header of a thousand machines' twenty metrics has this much. */
const MAX_LINE_BYTES = 1 << 23;
const PLANNED_ROWS = 64;
const SAMPLE_CHARS = 80;

export class DelimitedSink implements Sink {
  readonly #file: string;
  readonly #lines = new ByteLines(
    (bytes, from, end, line) => this.#line(bytes, from, end, line),
    MAX_LINE_BYTES,
  );
  readonly #fields = new Fields();
  /** The header and the first rows, until they tell what the columns are. */
  #first: { readonly bytes: Buffer; readonly line: number }[] | null = [];
  #plan: TablePlan | null = null;
  #samples: TableSamples | null = null;
  #machine = new FieldText();
  #device = new FieldText();
  #metric = new FieldText();
  /** The last time that is no number; neighbours mostly have the same. */
  #time = "";
  #timeS = NaN;
  #namedMachine: string | null = null;
  #hasNoZone = false;
  #bad = 0;
  #firstBad: Defect | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#lines.push(chunk);
  }

  end(): Reading {
    this.#lines.end();
    this.#begin();
    const file = this.#file;
    const base = { file, format: METRIC_TABLE, rank: null };
    const samples = this.#samples;
    if (samples === null) {
      const what = "its first line is not the header of a table of samples";
      return { ...base, records: 0, defects: [{ file, what, line: 1 }] };
    }
    const records = samples.samples;
    const metrics = samples.finish();
    const reading = { ...base, records, defects: [...this.#defects(), ...samples.defects()] };
    return records > 0 || metrics.links ? { ...reading, metrics } : reading;
  }

  #line(bytes: Buffer, from: number, end: number, line: number): void {
    if (from === end) return;
    if (this.#first === null) {
      this.#row(bytes, from, end, line);
      return;
    }
    if (
      this.#first.length === 0 &&
      isPreamble(bytes.toString("latin1", from, Math.min(end, from + 8)))
    )
      return;
    this.#first.push({ bytes: Buffer.from(bytes.subarray(from, end)), line });
    if (this.#first.length > PLANNED_ROWS) this.#begin();
  }

  #begin(): void {
    const first = this.#first;
    if (first === null) return;
    this.#first = null;
    const [header, ...rows] = first;
    if (header === undefined) return;
    const text = header.bytes.toString("utf8");
    this.#fields.delimiter = delimiterOf(text);
    const split = (bytes: Buffer): string[] =>
      textsOf(bytes.toString("utf8"), this.#fields.delimiter);
    const plan = planTable(
      split(header.bytes),
      rows.map((row) => split(row.bytes)),
      this.#file,
    );
    if (plan === null) return;
    this.#plan = plan;
    this.#samples = new TableSamples(this.#file, plan);
    for (const { bytes, line } of rows) this.#row(bytes, 0, bytes.length, line);
  }

  #row(bytes: Buffer, from: number, end: number, line: number): void {
    const plan = this.#plan;
    if (plan === null) return;
    const fields = this.#fields;
    const width = fields.split(bytes, from, end);
    // Some writers end each row with a delimiter.
    const isWhole =
      width === plan.width ||
      (width === plan.width + 1 && fields.from[width - 1] === fields.to[width - 1]);
    if (!isWhole) {
      this.#reject(bytes, from, end, line, `has ${count(width, "field")}, not ${plan.width}`);
      return;
    }
    const timeS = this.#timeOf(bytes, plan);
    if (!(timeS - timeS === 0)) {
      this.#reject(bytes, from, end, line, "has no readable time");
      return;
    }
    const machine = plan.machine < 0 ? null : this.#machine.of(bytes, fields, plan.machine);
    const device = plan.device < 0 ? null : this.#device.of(bytes, fields, plan.device);
    if (machine !== null && machine !== this.#namedMachine && isBlank(machine)) {
      this.#reject(bytes, from, end, line, "names no machine");
      return;
    }
    this.#namedMachine = machine;
    const samples = this.#samples!;
    samples.row(timeS, machine, device !== null && isBlank(device) ? "" : device);
    let isRead = true;
    if (plan.metric >= 0) {
      const k = samples.metric(this.#metric.of(bytes, fields, plan.metric));
      isRead = this.#cell(samples, k, bytes, plan.value);
    } else {
      for (let k = 0; k < plan.columns.length; k++) {
        if (!this.#cell(samples, k, bytes, plan.columns[k]!.column)) isRead = false;
      }
    }
    if (!isRead) this.#reject(bytes, from, end, line, "has fields that are not numbers");
  }

  #cell(samples: TableSamples, k: number, bytes: Buffer, column: number): boolean {
    const from = this.#fields.from[column]!;
    const to = this.#fields.to[column]!;
    if (from === to) return true;
    const value = byteNumber(bytes, from, to);
    if (value !== NO_NUMBER) {
      samples.add(k, value);
      return true;
    }
    const text = bytes.toString("utf8", from, Math.min(to, from + SAMPLE_CHARS));
    if (isBlank(text)) return true;
    const held = withUnit(text);
    if (held) samples.addWithUnit(k, held.value, held.unit);
    else {
      const found = [decimalComma(text), stateNumber(text)].find((one) => one - one === 0);
      if (found === undefined) return false;
      samples.add(k, found);
    }
    return true;
  }

  #timeOf(bytes: Buffer, plan: TablePlan): number {
    const from = this.#fields.from[plan.time]!;
    const to = this.#fields.to[plan.time]!;
    const value = byteNumber(bytes, from, to);
    if (value !== NO_NUMBER) {
      const { timeUnit } = plan;
      // By a division, which rounds once: 1e-3 is no exact double.
      if (timeUnit !== 0 && timeUnit !== 1) return value / Math.round(1 / timeUnit);
      return secondsOf(value);
    }
    const text = bytes.toString("latin1", from, Math.min(to, from + SAMPLE_CHARS));
    if (text === this.#time) return this.#timeS;
    const stamp = parseStamp(text);
    if (stamp && !stamp.hasZone && !plan.isUtc) this.#hasNoZone = true;
    this.#time = text;
    this.#timeS = stamp?.timeS ?? NaN;
    return this.#timeS;
  }

  #reject(bytes: Buffer, from: number, end: number, line: number, why: string): void {
    this.#bad++;
    const sample = bytes.toString("utf8", from, Math.min(end, from + SAMPLE_CHARS));
    this.#firstBad ??= { file: this.#file, line, what: `${why}: ${sample}` };
  }

  #defects(): Defect[] {
    const file = this.#file;
    const defects: Defect[] = this.#firstBad ? [this.#firstBad] : [];
    if (this.#bad > 1) {
      defects.push({
        file,
        what: `${count(this.#bad, "row")} cannot be read, or only in part`,
      });
    }
    if (this.#lines.tooLong > 0) defects.push({ file, what: "has lines that are too long" });
    if (this.#hasNoZone)
      defects.push({ file, what: "its times name no time zone; they are read as UTC" });
    return defects;
  }
}

/**
 * A column's texts, each made once: machines, devices and metrics come back in every other row.
 */
class FieldText {
  readonly #index = new SeriesIndex();
  readonly #texts: string[] = [];

  of(bytes: Buffer, fields: Fields, column: number): string {
    const from = fields.from[column]!;
    const to = fields.to[column]!;
    const known = this.#index.find(bytes, from, to);
    if (known !== undefined) return this.#texts[known]!;
    const raw = bytes.toString("utf8", from, to);
    const text = raw.includes('""') ? raw.replaceAll('""', '"') : raw;
    if (this.#texts.length < MAX_TEXTS) this.#index.put(this.#texts.push(text) - 1);
    return text;
  }
}
