/**
 * torchtitan's structured log: one JSON object a line, one file a process. Defined in pytorch/torchtitan:
 * torchtitan/observability/structured_logger/jsonl_handler.py (the fields) and structured_logging.py (what is
 * logged: spans as "<name>_start" and "<name>_end", instants, "metric_value"). The trainer calls set_step()
 * before the first span of a step, so that a step lasts from its first event to the first of the next; what it
 * does after a step (checkpoint, validation) is still stamped with that step.
 */
import { getOrInsert } from "../base/group-by.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { CHECKPOINT, EVALUATION, START } from "../model/series.ts";
import { LineSink } from "./line-sink.ts";
import { rankFromName, type Head, type Reader, type Sink } from "./reader.ts";
import { MAX_POINTS, SeriesColumns } from "./series-columns.ts";

/**
 * Single fields out of a line of JSON, without parsing the rest of it. A key with its quotes and colon cannot
 * stand inside a string: quotes are escaped there.
 */
const SPACE = 32;
const QUOTE = 34;
const NUMBER_CHARS = 30;

const FORMAT = "torchtitan-jsonl";
const SAMPLE_CHARS = 80;
/** Messages are cut to 1,000 characters by the writer; stacks are not. */
const MAX_LINE_BYTES = 1 << 16;
/** Ranks that one file may tell of; numbers beyond are not believed. */
const MAX_RANKS = 1 << 16;
const CHECKPOINT_NAME = /checkpoint|ckpt/i;
const EVALUATION_NAME = /valid|eval/i;
const START_NAME = /^(?:structured_logger_started|training_start)/;
/** A scalar that some trainer logs itself, in seconds or milliseconds. */
const STEP_TIME =
  /^(?:.{0,40}[./])?(?:end_to_end|(?:step|iteration|iter)[-_]?(?:time|duration))(?:[-_(]?(ms|s)\)?)?$/;

export const torchtitanJsonl: Reader = {
  format: FORMAT,
  sniff(head: Head): boolean {
    const end = head.text.indexOf("\n");
    const first = end < 0 ? head.text : head.text.slice(0, end);
    return (
      first.startsWith("{") &&
      first.includes('"log_type_name":') &&
      (first.includes('"time_us":') || first.includes('"time_ms":'))
    );
  },
  open: (file: string): Sink => new TorchtitanSink(file),
};

/** One rank's steps. */
class Steps {
  readonly columns = new SeriesColumns();
  pid = NaN;
  step = NaN;
  /** When the first event of the step was logged. */
  beganMs = NaN;
  line = 0;
  /** What was done in the step under way, and before the first. */
  bits = 0;
  reported = 0;
  reportedMs = NaN;
}

class TorchtitanSink extends LineSink {
  readonly #ranks = new Map<number, Steps>();
  #records = 0;
  #points = 0;
  #dropped = 0;
  #bad = 0;
  #firstBad: Defect | null = null;

  constructor(file: string) {
    super(file, MAX_LINE_BYTES);
  }

  finish(): Reading {
    const ranks = [...this.#ranks].filter(([, steps]) => steps.columns.tells);
    const only = this.#ranks.size === 1 ? [...this.#ranks.keys()][0]! : null;
    return {
      file: this.file,
      format: FORMAT,
      rank: only ?? (this.#ranks.size === 0 ? rankFromName(this.file) : null),
      records: this.#records,
      defects: this.#defects(),
      series: ranks.map(([rank, { columns, reported }]) =>
        columns.series({
          source: only === null ? `${this.file}, rank ${rank}` : this.file,
          file: this.file,
          rank,
          basis: reported > columns.count / 2 ? "reported" : "timestamps",
        }),
      ),
    };
  }

  line(text: string, no: number): void {
    if (text === "") return;
    const ms = timeMs(text);
    if (!text.startsWith("{") || !text.trimEnd().endsWith("}") || Number.isNaN(ms)) {
      this.#bad++;
      this.#firstBad ??= {
        file: this.file,
        line: no,
        what: `is not a torchtitan record: ${text.slice(0, SAMPLE_CHARS)}`,
      };
      return;
    }
    this.#records++;
    const rank = jsonNumber(text, '"global_rank":', '"rank":');
    const isRank = Number.isSafeInteger(rank) && rank >= 0 && rank < MAX_RANKS;
    const steps = this.#stepsOf(isRank ? rank : 0);
    const name = jsonText(text, '"log_type_name":');
    this.#restart(steps, jsonNumber(text, '"pid":'));
    const step = jsonNumber(text, '"step":');
    // Nothing is stamped with a step before the first; a thread that still saves a checkpoint keeps an old one.
    if (step > steps.step || (Number.isNaN(steps.step) && step >= 0)) {
      this.#next(steps, step, ms, no);
    }
    if (name === "metric_value") this.#metric(text, steps);
    else steps.bits |= bitOf(name);
  }

  #stepsOf(rank: number): Steps {
    const steps = getOrInsert(this.#ranks, rank, () => new Steps());
    return steps;
  }

  /** Another process goes on in the same file: the step under way was never finished. */
  #restart(steps: Steps, pid: number): void {
    if (steps.pid === pid || Number.isNaN(pid)) return;
    if (!Number.isNaN(steps.pid)) {
      steps.step = steps.beganMs = steps.reportedMs = NaN;
      steps.bits |= START;
    }
    steps.pid = pid;
  }

  #next(steps: Steps, step: number, ms: number, no: number): void {
    if (!Number.isNaN(steps.step)) {
      if (this.#points < MAX_POINTS) this.#point(steps, step, ms);
      else this.#dropped++;
      steps.bits = 0;
    }
    steps.step = step;
    steps.beganMs = ms;
    steps.line = no;
    steps.reportedMs = NaN;
  }

  #point(steps: Steps, step: number, ms: number): void {
    this.#points++;
    const elapsedMs = (ms - steps.beganMs) / (step - steps.step);
    const isReported = steps.reportedMs >= 0;
    if (isReported) steps.reported++;
    const durationMs = isReported ? steps.reportedMs : elapsedMs >= 0 ? elapsedMs : NaN;
    steps.columns.add(step - 1, durationMs, ms, steps.line, steps.bits);
  }

  #metric(text: string, steps: Steps): void {
    const m = STEP_TIME.exec(jsonText(text, '"event_name":'));
    if (!m) return;
    steps.reportedMs = jsonNumber(text, '"value":') * (m[1] === "ms" ? 1 : 1000);
  }

  #defects(): Defect[] {
    const defects: Defect[] = [];
    if (this.#firstBad) defects.push(this.#firstBad);
    if (this.#bad > 1) {
      defects.push({
        file: this.file,
        what: `${this.#bad} lines are not torchtitan records`,
      });
    }
    if (this.#dropped > 0) {
      const what = `the last ${this.#dropped} of its iterations were left out: too many`;
      defects.push({ file: this.file, what });
    }
    return defects;
  }
}

function timeMs(text: string): number {
  const us = jsonNumber(text, '"time_us":');
  return us > 0 ? us / 1000 : jsonNumber(text, '"time_ms":');
}

function bitOf(name: string): number {
  if (START_NAME.test(name)) return START;
  if (!name.endsWith("_start")) return 0;
  if (CHECKPOINT_NAME.test(name)) return name.includes("load") ? START : CHECKPOINT;
  return EVALUATION_NAME.test(name) ? EVALUATION : 0;
}

/** The number under the first of the keys that is there (written `"step":`); NaN where it is none. */
function jsonNumber(text: string, key: string, otherKey?: string): number {
  const at = text.indexOf(key);
  if (at < 0) return otherKey === undefined ? NaN : jsonNumber(text, otherKey);
  const from = skipSpaces(text, at + key.length);
  let end = from;
  while (end < from + NUMBER_CHARS && isNumeric(text.charCodeAt(end))) end++;
  return end === from ? NaN : Number(text.slice(from, end));
}

/** The string under a key, escapes left as they are; "" where it is none. */
function jsonText(text: string, key: string): string {
  const at = text.indexOf(key);
  if (at < 0) return "";
  const from = skipSpaces(text, at + key.length);
  if (text.charCodeAt(from) !== QUOTE) return "";
  const end = text.indexOf('"', from + 1);
  return end < 0 ? "" : text.slice(from + 1, end);
}

function skipSpaces(text: string, at: number): number {
  let from = at;
  while (text.charCodeAt(from) === SPACE) from++;
  return from;
}

/** 0-9 + - . e E */
function isNumeric(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    code === 43 ||
    code === 45 ||
    code === 46 ||
    code === 69 ||
    code === 101
  );
}
