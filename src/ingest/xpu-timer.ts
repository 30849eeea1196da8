/**
 * A scrape of xpu_timer in Prometheus' text format (dlrover: xpu_timer/common/manager.cc names the gauges; port 18889).
 * A line is `NAME{label="value",…} number`; `#` begins comments. One scrape holds all ranks of a machine.
 */
import { LineSplitter } from "../base/lines.ts";
import { count } from "../base/text.ts";
import { MAX_RANKS } from "../model/ids.ts";
import type { Defect, Reading } from "../model/reading.ts";
import type { XpuTimerKernels, XpuTimerRank, XpuTimerScrape } from "../model/xpu-timer.ts";
import type { Head, Reader, Sink } from "./reader.ts";

const FORMAT = "xpu-timer";
const MAX_LINE_BYTES = 1 << 14;
/** A scrape of 8 ranks has some hundred lines. */
const MAX_ROWS = 1 << 20;

const SAMPLE = /^XPU_TIMER_(\w+)\{(.*)\}\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"\s*,?\s*/y;
const KERNEL = /^(COLL|MM)_KERNEL_(?:(AVG|MAX|P99|MIN)_LATENCY|BANDWIDTH|FLOPS)$/;

type Labels = ReadonlyMap<string, string>;
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Gauge → field; others of a rank are not needed. */
const RANK_GAUGES: Readonly<Record<string, keyof XpuTimerRank>> = {
  COMMON_WORK_QUEUE_SIZE: "workQueue",
  COMMON_POOL_QUEUE_SIZE: "poolQueue",
  COMMON_GC_COUNT: "gcCount",
  COMMON_DATA_LOADER_COUNT: "dataLoaderCount",
  MEMORY_COUNTER: "memory",
};
const LATENCIES: Readonly<Record<string, "avgUs" | "maxUs" | "p99Us" | "minUs">> = {
  AVG: "avgUs",
  MAX: "maxUs",
  P99: "p99Us",
  MIN: "minUs",
};

export const xpuTimer: Reader = {
  format: FORMAT,
  sniff({ text }: Head): boolean {
    return (
      /^(?:# TYPE )?XPU_TIMER_[A-Z_]+[{ ]/m.test(text) && /^(?:#|[\w:]+[{ ])/.test(text.trimStart())
    );
  },
  open: (file) => new XpuTimerSink(file),
};

class XpuTimerSink implements Sink {
  readonly #file: string;
  readonly #lines = new LineSplitter((line, number) => this.#line(line, number), MAX_LINE_BYTES);
  readonly #ranks = new Map<number, Mutable<XpuTimerRank>>();
  readonly #kernels = new Map<string, Mutable<XpuTimerKernels>>();
  #jobName = "";
  #samples = 0;
  #unread = { lines: 0, first: 0 };
  #tooMany = 0;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#lines.push(chunk);
  }

  end(): Reading {
    this.#lines.end();
    const file = this.#file;
    const defects: Defect[] = [];
    if (this.#unread.lines > 0) {
      const what = `${count(this.#unread.lines, "line")} cannot be read; the first is this one`;
      defects.push({ file, what, line: this.#unread.first });
    }
    if (this.#tooMany > 0) {
      defects.push({ file, what: `${count(this.#tooMany, "line")} left out: too many to hold` });
    }
    const scrape: XpuTimerScrape = {
      file,
      jobName: this.#jobName,
      ranks: [...this.#ranks.values()].sort((a, b) => a.rank - b.rank),
      kernels: [...this.#kernels.values()],
    };
    const reading = { file, format: FORMAT, rank: null, records: this.#samples, defects };
    return this.#ranks.size > 0 ? { ...reading, xpuTimer: scrape } : reading;
  }

  #line(line: string, number: number): void {
    if (!line.startsWith("XPU_TIMER_")) return;
    const [, gauge, labelText, valueText] = SAMPLE.exec(line) ?? [];
    const labels = labelText === undefined ? null : labelsOf(labelText);
    const rank = wholeNumber(labels?.get("rank"));
    const value = Number(valueText);
    if (!labels || rank < 0 || rank >= MAX_RANKS || (Number.isNaN(value) && valueText !== "NaN")) {
      if (this.#unread.lines++ === 0) this.#unread.first = number;
      return;
    }
    if (this.#ranks.size + this.#kernels.size >= MAX_ROWS) {
      this.#tooMany++;
      return;
    }
    this.#samples++;
    if (this.#jobName === "") this.#jobName = labels.get("job_name") ?? "";
    const of = this.#rank(rank, labels);
    const kernel = KERNEL.exec(gauge!);
    const field = Object.hasOwn(RANK_GAUGES, gauge!) ? RANK_GAUGES[gauge!] : undefined;
    if (kernel) this.#kernel(rank, labels, kernel, value);
    else if (gauge === "COMMON_HANG") of.isHung = value !== 0;
    else if (field) Object.assign(of, { [field]: value });
  }

  #rank(rank: number, labels: Labels): Mutable<XpuTimerRank> {
    const known = this.#ranks.get(rank);
    if (known) return known;
    const made: XpuTimerRank = {
      rank,
      localRank: wholeNumber(labels.get("local_rank")),
      ip: labels.get("ip") ?? "",
      pod: labels.get("pod_name") ?? "",
      isHung: null,
      workQueue: NaN,
      poolQueue: NaN,
      gcCount: NaN,
      dataLoaderCount: NaN,
      memory: NaN,
    };
    this.#ranks.set(rank, made);
    return made;
  }

  #kernel(rank: number, labels: Labels, gauge: RegExpExecArray, value: number): void {
    const text = (label: string): string => labels.get(label) ?? "";
    const names = ["operation", "dtype", "level", "algorithm", "transport", "small"];
    const key = [rank, gauge[1], ...names.map(text)].join("|");
    let row = this.#kernels.get(key);
    if (!row) {
      row = {
        rank,
        kind: gauge[1] === "MM" ? "matmul" : "collective",
        operation: text("operation"),
        dtype: text("dtype"),
        level: wholeNumber(labels.get("level")),
        avgUs: NaN,
        maxUs: NaN,
        p99Us: NaN,
        minUs: NaN,
        flops: NaN,
        bandwidth: NaN,
        algorithm: text("algorithm"),
        transport: text("transport"),
        isSmall: text("small") === "1",
      };
      this.#kernels.set(key, row);
    }
    const latency = LATENCIES[gauge[2] ?? ""];
    if (latency) row[latency] = value;
    else if (gauge[0].endsWith("FLOPS")) row.flops = value;
    else row.bandwidth = value;
  }
}

/** null where they are not labels. */
function labelsOf(text: string): Labels | null {
  const labels = new Map<string, string>();
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const found = LABEL.exec(text);
    if (!found) return null;
    const value = found[2]!.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
    labels.set(found[1]!, value.slice(0, 256));
  }
  return labels;
}

function wholeNumber(text: string | undefined): number {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : -1;
}
