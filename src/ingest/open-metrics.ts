/**
 * Samples in OpenMetrics' or Prometheus' text format: `name{label="value",…} value [time]`, as exporters answer a
 * scrape and as promtool dumps and reads it. Lines of one series mostly follow each other and differ only behind the
 * labels, so a line is first compared with what the one before began with.
 */
import { count } from "../base/text.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { builderDefects } from "./metric-table/builder-defects.ts";
import { ByteLines } from "./metric-table/byte-lines.ts";
import { byteNumber, NO_NUMBER } from "./metric-table/byte-number.ts";
import { machineFromName, timeFromName } from "./metric-table/file-words.ts";
import { labelsOf } from "./metric-table/labels.ts";
import { MAX_SERIES, SeriesIndex } from "./metric-table/series-index.ts";
import { secondsOf } from "./metric-table/times.ts";
import { machineOfLabels, MetricSetBuilder } from "./metrics/metric-set-builder.ts";
import type { Head, Reader, Sink } from "./reader.ts";
import { isInfo } from "./metrics/metric-labels.ts";
import { servedBy } from "../model/metric-catalog.ts";
import type { MetricType } from "../model/metrics.ts";

const [QUOTE, BACKSLASH, OPEN, CLOSE] = [34, 92, 123, 125] as const;

const TYPE = /^#\s*TYPE\s+"?([^\s"]+)"?\s+([a-z]+)/;
const MAX_NAMES = 1 << 17;

const FORMAT = "open-metrics";
const MAX_LINE_BYTES = 1 << 16;
const [TAB, SPACE, HASH] = [9, 32, 35] as const;

const SAMPLE =
  /^[A-Za-z_:][\w:.]*(?:\{.*\})?[ \t]+(?:[+-]?[\d.]+(?:[eE][+-]?\d+)?|NaN|[+-]?Inf)(?:[ \t]+-?[\d.]+(?:[eE][+-]?\d+)?)?[ \t]*(?:#.*)?$/;
const META = /^# (?:HELP|TYPE|UNIT|EOF)\b/;
const CLEAR = /^# (?:HELP|TYPE|UNIT) [A-Za-z_:]|^[A-Za-z_:][\w:.]*\{(?:[A-Za-z_]\w*="|\} )/m;
const SNIFFED_LINES = 200;

/** Series that are not kept. */
const UNWANTED = -1;
const NO_MACHINE = -2;
const UNREADABLE = -3;

export const openMetrics: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    if (!CLEAR.test(text)) return false;
    const lines = text.split("\n", SNIFFED_LINES).map((line) => line.trimEnd());
    if (lines.length > 1) lines.pop(); // It may be cut.
    const told = lines.filter((line) => line !== "" && (META.test(line) || !line.startsWith("#")));
    const fitting = told.filter((line) => META.test(line) || SAMPLE.test(line)).length;
    return fitting > 0 && fitting >= 0.8 * told.length;
  },
  open: (file) => new OpenMetricsSink(file),
};

class OpenMetricsSink implements Sink {
  readonly #file: string;
  readonly #lines = new ByteLines(
    (bytes, from, end, line, isWhole) => this.#line(bytes, from, end, line, isWhole),
    MAX_LINE_BYTES,
  );
  readonly #builder = new MetricSetBuilder();
  readonly #families = new Families();
  readonly #index = new SeriesIndex();
  readonly #machine: string | null;
  readonly #fileTimeS: number;
  /** What the last line began with, up to its value. */
  #last = Buffer.alloc(1 << 10);
  #lastLength = -1;
  #lastSeries = UNWANTED;
  #unread = { lines: 0, first: 0 };
  #unwanted = 0;
  #withoutTime = 0;
  #withoutMachine = 0;
  #tooManySeries = 0;
  #isCut = false;
  #tellsNames = false;

  constructor(file: string) {
    this.#file = file;
    this.#machine = machineFromName(file);
    this.#fileTimeS = timeFromName(file);
  }

  push(chunk: Uint8Array): void {
    this.#lines.push(chunk);
  }

  end(): Reading {
    this.#lines.end();
    const { samples } = this.#builder.counts;
    const finished = this.#builder.finish();
    this.#tellsNames = finished.links !== undefined;
    const metrics = this.#isCut ? { ...finished, isCut: true } : finished;
    const reading: Reading = {
      file: this.#file,
      format: FORMAT,
      rank: null,
      records: samples,
      defects: this.#defects(samples),
    };
    // kube-state-metrics says nothing of machines but what they are called.
    return samples > 0 || metrics.links ? { ...reading, metrics } : reading;
  }

  #line(bytes: Buffer, from: number, end: number, line: number, isWhole: boolean): void {
    let series = this.#lastSeries;
    let at = from + this.#lastLength;
    if (at >= end || !this.#isLast(bytes, from)) {
      if (from === end) return;
      if (bytes[from] === HASH) {
        this.#comment(bytes.toString("latin1", from, end));
        return;
      }
      at = prefixEnd(bytes, from, end);
      series = at < 0 ? UNREADABLE : this.#seriesOf(bytes, from, at);
      if (at > 0) this.#remember(bytes, from, at, series);
    }
    if (!isWhole) {
      this.#isCut = true;
    } else if (series >= 0) {
      this.#sample(series, bytes, at, end, line);
    } else if (series === UNWANTED) this.#unwanted++;
    else if (series === NO_MACHINE) this.#withoutMachine++;
    else if (this.#unread.lines++ === 0) this.#unread.first = line;
  }

  #isLast(bytes: Buffer, from: number): boolean {
    const last = this.#last;
    const length = this.#lastLength;
    if (length < 0) return false;
    const next = bytes[from + length];
    if (next !== SPACE && next !== TAB) return false;
    return last.compare(bytes, from, from + length, 0, length) === 0;
  }

  #remember(bytes: Buffer, from: number, end: number, series: number): void {
    if (end - from > this.#last.length) this.#last = Buffer.alloc(2 * (end - from));
    bytes.copy(this.#last, 0, from, end);
    this.#lastLength = end - from;
    this.#lastSeries = series;
  }

  #seriesOf(bytes: Buffer, from: number, end: number): number {
    const known = this.#index.find(bytes, from, end);
    if (known !== undefined) return known;
    const text = bytes.toString("utf8", from, end).trimEnd();
    const brace = text.indexOf("{");
    const name = this.#families.wanted(brace < 0 ? text : text.slice(0, brace).trimEnd());
    if (this.#index.size >= MAX_SERIES) {
      if (name !== null) this.#tooManySeries++;
      return UNWANTED;
    }
    const series =
      name === null ? UNWANTED : this.#newSeries(name, brace < 0 ? "" : text.slice(brace + 1, -1));
    this.#index.put(series);
    return series;
  }

  #newSeries(name: string, labelText: string): number {
    const labels = labelsOf(labelText);
    if (labels === null) return UNREADABLE;
    if (machineOfLabels(labels) === null) {
      if (this.#machine === null) return NO_MACHINE;
      labels.set("machine", this.#machine);
    }
    return this.#builder.labelled(name, labels, this.#families.type(name));
  }

  #sample(series: number, bytes: Buffer, from: number, end: number, line: number): void {
    let at = skipBlanks(bytes, from, end);
    let to = wordEnd(bytes, at, end);
    const value = byteNumber(bytes, at, to);
    at = skipBlanks(bytes, to, end);
    let timeS = this.#fileTimeS;
    if (at < end && bytes[at] !== HASH) {
      to = wordEnd(bytes, at, end);
      timeS = secondsOf(byteNumber(bytes, at, to));
      at = skipBlanks(bytes, to, end);
    }
    const isOdd =
      value === NO_NUMBER || timeS < NO_NUMBER / 1e10 || (at < end && bytes[at] !== HASH);
    if (isOdd) {
      if (this.#unread.lines++ === 0) this.#unread.first = line;
    } else if (Number.isNaN(timeS)) this.#withoutTime++;
    else this.#builder.add(series, timeS, value);
  }

  #comment(text: string): void {
    const told = this.#families.comment(text);
    for (const name of told?.names ?? []) this.#builder.setType(name, told!.type);
  }

  #defects(samples: number): Defect[] {
    const file = this.#file;
    const defects: Defect[] = [];
    const say = (what: string, line?: number): void => {
      defects.push(line === undefined ? { file, what } : { file, what, line });
    };
    const { lines, first } = this.#unread;
    if (lines > 0) say(`${count(lines, "line")} cannot be read; the first is this one`, first);
    if (this.#lines.tooLong > 0) say(`${count(this.#lines.tooLong, "line")} left out: too long`);
    if (this.#isCut) say("ends in the middle of a line, which is left out");
    if (this.#withoutTime > 0) {
      say(
        `${count(this.#withoutTime, "sample")} left out: they have no time, and neither has the file's name ` +
          "(scrape-1794700801.prom)",
      );
    }
    if (this.#withoutMachine > 0) {
      say(
        `${count(this.#withoutMachine, "sample")} left out: no label names a machine, nor does the file's name ` +
          "(node003.prom)",
      );
    }
    if (this.#tooManySeries > 0) say("has too many series to hold; the others are left out");
    if (samples === 0 && this.#unwanted > 0 && !this.#tellsNames) {
      const names = count(this.#families.unknown, "metric");
      say(`none of its ${names} is a metric that Faultline compares`);
    }
    return [...defects, ...builderDefects(file, this.#builder.counts)];
  }
}

/** Which families of a scrape the catalog wants, and of what type they are said to be. */
class Families {
  readonly #types = new Map<string, MetricType>();
  /** Name in the file → name in the catalog; null where nobody wants it. */
  readonly #names = new Map<string, string | null>();
  /** Names that nobody wants. */
  unknown = 0;

  /** A comment; gives back the names whose type it tells. */
  comment(line: string): { readonly names: readonly string[]; readonly type: MetricType } | null {
    const found = TYPE.exec(line);
    if (!found) return null;
    const family = found[1]!;
    const type: MetricType = found[2] === "counter" || found[2] === "gauge" ? found[2] : "unknown";
    // OpenMetrics names a counter's family without _total, the older format with it.
    const names = found[2] === "counter" ? [family, `${family}_total`] : [family];
    if (this.#types.size < MAX_NAMES) for (const name of names) this.#types.set(name, type);
    return { names, type };
  }

  wanted(name: string): string | null {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    // A client that writes OpenMetrics puts _total behind counters that are named without it in the older format.
    const short = name.endsWith("_total") ? name.slice(0, -"_total".length) : name;
    const wanted =
      isInfo(name) || servedBy(name).length > 0 ? name : servedBy(short).length > 0 ? short : null;
    if (wanted === null) this.unknown++;
    if (this.#names.size < MAX_NAMES) this.#names.set(name, wanted);
    return wanted;
  }

  type(name: string): MetricType {
    return this.#types.get(name) ?? (name.endsWith("_total") ? "counter" : "unknown");
  }
}

/**
 * The parts of a line `name{labels} value time`, found in its bytes.
 * Behind the name and the labels; -1 where they do not end.
 */
function prefixEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== OPEN && bytes[at] !== SPACE && bytes[at] !== TAB) at++;
  let brace = at;
  while (brace < end && (bytes[brace] === SPACE || bytes[brace] === TAB)) brace++;
  if (bytes[brace] !== OPEN || brace >= end) return at < end ? at : -1;
  let isQuoted = false;
  for (at = brace + 1; at < end; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (byte === BACKSLASH && isQuoted) at++;
    else if (byte === CLOSE && !isQuoted) return at + 1;
  }
  return -1;
}

function skipBlanks(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] === SPACE || bytes[at] === TAB)) at++;
  return at;
}

function wordEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && bytes[at] !== SPACE && bytes[at] !== TAB) at++;
  return at;
}
