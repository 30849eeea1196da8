/**
 * Answers of a metrics server that somebody saved: Prometheus' query and query_range (also of those that speak like
 * it), and VictoriaMetrics' export, a line a series.
 */
import { count } from "../base/text.ts";
import type { MetricType } from "../model/metrics.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { builderDefects } from "./metric-table/builder-defects.ts";
import { ApiAnswerScanner } from "./metrics/api-answer.ts";
import { ExportLineScanner } from "./metrics/export-lines.ts";
import { LabelledSeries } from "./metrics/labelled-series.ts";
import { MetricSetBuilder } from "./metrics/metric-set-builder.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "metric-api";
const STATUS =
  /^\s*\{\s*"status"\s*:\s*"(?:success|error)"\s*,\s*"(?:data|errorType|error|isPartial)"\s*:/;
const DATA_FIRST = /^\s*\{\s*"data"\s*:\s*\{\s*"result(?:Type)?"\s*:/;
/** Of the query API only these hold samples; the others list names. */
const NO_SAMPLES = /^\s*\{\s*"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*(?:\[|\{\s*"(?!result))/;
const LIST = /^\s*\[\s*\{\s*"metric"\s*:\s*\{[^{}]*\}\s*,\s*"values?"\s*:\s*\[/;
const EXPORT =
  /^\s*\{\s*"metric"\s*:\s*\{[^{}]*\}\s*,\s*"(?:values|timestamps)"\s*:\s*\[\s*[-\d"n\]]/;

export const metricApi: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head): boolean =>
    (STATUS.test(text) && !NO_SAMPLES.test(text)) ||
    DATA_FIRST.test(text) ||
    LIST.test(text) ||
    EXPORT.test(text),
  open: (file) => new MetricApiSink(file),
};

const typeByName = (name: string): MetricType => (name.endsWith("_total") ? "counter" : "unknown");
/** Enough to tell the two formats apart. */
const BEGIN_CHARS = 64;

class MetricApiSink implements Sink {
  readonly #file: string;
  readonly #builder = new MetricSetBuilder();
  readonly #series = new LabelledSeries(this.#builder, typeByName);
  #begin = Buffer.alloc(0);
  #answers: ApiAnswerScanner | null = null;
  #lines: ExportLineScanner | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    if (this.#answers ?? this.#lines) {
      (this.#answers ?? this.#lines!).push(chunk);
      return;
    }
    this.#begin = Buffer.concat([this.#begin, chunk]);
    if (this.#begin.length >= BEGIN_CHARS) this.#decide();
  }

  end(): Reading {
    this.#decide();
    const file = this.#file;
    const remarks = this.#answers ? this.#ofAnswers(this.#answers) : this.#ofLines(this.#lines!);
    const records = this.#builder.counts.samples;
    const metrics = this.#builder.finish();
    const { nameless, unwanted } = this.#series;
    if (nameless > 0) {
      remarks.push(`${nameless} of its series have no name: query metrics, not expressions`);
    }
    // kube-state-metrics and node_uname_info say nothing but what machines are called.
    const tellsNames = metrics.links !== undefined;
    if (records === 0 && unwanted > 0 && !tellsNames) {
      remarks.push(
        "none of its series is a metric that Faultline compares, with a label that names the machine",
      );
    }
    const defects: Defect[] = [
      ...remarks.map((what) => ({ file, what })),
      ...builderDefects(file, this.#builder.counts),
    ];
    const reading = { file, format: FORMAT, rank: null, records, defects };
    return records > 0 || tellsNames ? { ...reading, metrics } : reading;
  }

  #decide(): void {
    if (this.#answers ?? this.#lines) return;
    const isExport = /^\s*\{\s*"(?:metric|values|timestamps)"/.test(this.#begin.toString("latin1"));
    if (isExport) this.#lines = new ExportLineScanner(this.#series);
    else this.#answers = new ApiAnswerScanner(this.#series);
    (this.#answers ?? this.#lines!).push(this.#begin);
    this.#begin = Buffer.alloc(0);
  }

  #ofAnswers(scanner: ApiAnswerScanner): string[] {
    const { error, warnings, isPartial, defect, isWhole } = scanner.end();
    const remarks = [...warnings]
      .slice(0, 3)
      .map((text) => `the server warned: ${text.slice(0, 200)}`);
    if (error !== null)
      remarks.unshift(`the server answered with an error: ${error.slice(0, 200)}`);
    if (isPartial) remarks.push("the server says that the answer is partial");
    if (defect !== null) remarks.push(defect);
    else if (!isWhole) remarks.push("ends in the middle of an answer");
    return remarks;
  }

  #ofLines(scanner: ExportLineScanner): string[] {
    const { badLines, isWhole } = scanner.end();
    const remarks = badLines > 0 ? [`${count(badLines, "line")} cannot be read`] : [];
    if (!isWhole) remarks.push("ends in the middle of a line");
    return remarks;
  }
}
