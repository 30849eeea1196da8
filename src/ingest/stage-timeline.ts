/**
 * What pipeline stages did, pass by pass: the Chrome trace that ByteDance's StragglerAnalysis writes
 * (analyzer/to_timeline.py: an array of complete events with args step, model_chunk, mb_id, seq_id; what pid and
 * tid mean is explained at stageOfThread). Communication begins there when its last partner has arrived,
 * and its duration can be slightly negative, because clocks of machines differ.
 */
import { getOrInsert } from "../base/group-by.ts";
import type { Defect, Reading } from "../model/reading.ts";
import { JsonObjects } from "./json-objects.ts";
import type { Head, Reader, Sink } from "./reader.ts";
import { KIND_OF, KINDS } from "./stage-timeline/stage-parquet.ts";
import {
  MAX_OPERATIONS,
  StageColumns,
  type StageRow,
  type StageColumnSet,
} from "./stage-timeline/stage-columns.ts";
import { MAX_RANKS } from "../model/ids.ts";
import { fieldsOf, parseFields, type Fields } from "../base/json.ts";

const LANES = 5;
const STAGE_NAME = /^PP rank (\d{1,6}),/;

interface Workers {
  readonly rank: Int32Array;
  readonly stage: Int32Array;
  /** Whether stages had to be guessed from the order of ranks. */
  readonly isGuess: boolean;
}

const FORMAT = "stage-timeline";
const SAMPLE_CHARS = 80;
const MAX_EVENT_BYTES = 1 << 14;
/** Events that the sniffer looks at; ordinary traces show another name long before. */
const SNIFFED_EVENTS = 64;
const US_PER_MS = 1000;

export const stageTimeline: Reader = {
  format: FORMAT,
  sniff(head: Head): boolean {
    if (!/^\s*\[\s*\{/.test(head.text) || !head.text.includes('"seq_id"')) return false;
    let seen = 0;
    let strange = 0;
    const objects = new JsonObjects(1, (text) => {
      if (seen >= SNIFFED_EVENTS || strange > 0) return;
      const event = parseFields(text);
      if (event?.["ph"] === "M") return;
      if (event && rowOf(event, emptyRow())) seen++;
      else strange++;
    });
    objects.push(head.bytes);
    return seen > 0 && strange === 0;
  },
  open: (file: string): Sink => new StageTimelineSink(file),
};

class StageTimelineSink implements Sink {
  readonly #file: string;
  readonly #columns = new StageColumns();
  readonly #row = emptyRow();
  /** Rank → stage. */
  readonly #stages = new Map<number, number>();
  readonly #objects = new JsonObjects(1, (text, line) => this.#event(text, line), MAX_EVENT_BYTES);
  #dropped = 0;
  #bad = 0;
  #firstBad: Defect | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#objects.push(chunk);
  }

  end(): Reading {
    const columns = this.#columns.finish();
    const { step, kind, microBatch, chunk, seq, startMs, durationMs } = columns;
    const { rank, stage, isGuess } = workersOf(columns, this.#stages);
    const about = { file: this.#file, format: FORMAT };
    const operations = {
      ...about,
      writer: null,
      rank,
      replica: columns.process,
      stage,
      step,
      kind,
      kinds: KINDS,
      microBatch,
      chunk,
      seq,
      startMs,
      durationMs,
    };
    return {
      ...about,
      rank: null,
      records: step.length,
      defects: this.#defects(isGuess),
      stageOperations: step.length > 0 ? [operations] : [],
    };
  }

  #event(text: string, line: number): void {
    const event = parseFields(text);
    if (event?.["ph"] === "M") return this.#name(event);
    if (!event || !rowOf(event, this.#row)) {
      this.#bad++;
      this.#firstBad ??= {
        file: this.#file,
        line,
        what: `is not an operation of a stage: ${text.slice(0, SAMPLE_CHARS)}`,
      };
    } else if (this.#columns.count < MAX_OPERATIONS) this.#columns.add(this.#row);
    else this.#dropped++;
  }

  #name(event: Fields): void {
    const { name } = fieldsOf(event["args"]) ?? {};
    const rank = rankOfThread(Number(event["tid"]));
    if (event["name"] !== "thread_name" || typeof name !== "string" || rank < 0) return;
    const stage = stageOfThread(name);
    if (stage !== null) this.#stages.set(rank, stage);
  }

  #defects(isGuess: boolean): Defect[] {
    const file = this.#file;
    const defects: Defect[] = this.#firstBad ? [this.#firstBad] : [];
    if (this.#bad > 1) defects.push({ file, what: `${this.#bad} events are not operations` });
    if (this.#objects.unfinished) {
      defects.push({ file, what: "is cut: its last operations are missing" });
    }
    if (isGuess) {
      defects.push({ file, what: "does not name all stages: taken from the order of ranks" });
    }
    if (this.#dropped > 0) {
      defects.push({ file, what: `the last ${this.#dropped} operations were left out: too many` });
    }
    return defects;
  }
}

function emptyRow(): StageRow {
  return {
    process: 0,
    thread: 0,
    step: 0,
    kind: 0,
    microBatch: -1,
    chunk: -1,
    seq: 0,
    startMs: 0,
    durationMs: 0,
  };
}

/** Fills the row; false where the event is not one of these operations. */
function rowOf(event: Fields, row: StageRow): boolean {
  const kind = KIND_OF.get(event["name"]);
  const args = fieldsOf(event["args"]) ?? {};
  const startUs = event["ts"];
  const durationUs = event["dur"];
  if (event["ph"] !== "X" || kind === undefined) return false;
  if (typeof startUs !== "number" || typeof durationUs !== "number") return false;
  if (!isIndex(event["pid"]) || !isIndex(event["tid"])) return false;
  if (!isIndex(args["step"]) || !isIndex(args["seq_id"])) return false;
  row.process = event["pid"];
  row.thread = event["tid"];
  row.step = args["step"];
  row.kind = kind;
  row.microBatch = isIndex(args["mb_id"]) ? args["mb_id"] : -1;
  row.chunk = isIndex(args["model_chunk"]) ? args["model_chunk"] : -1;
  row.seq = args["seq_id"];
  row.startMs = startUs / US_PER_MS;
  row.durationMs = durationUs / US_PER_MS;
  return true;
}

function isIndex(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31;
}

/**
 * Who did an operation. The writer puts the data-parallel index into `pid` and five threads a rank into `tid`
 * (rank * 5 + lane: compute, pp-comm, tp-comm, dp-comm, misc), and tells the pipeline stage only in the names of
 * the threads, at the end of the file.
 * "PP rank 3, TP rank 0, compute" → 3; null where it names no stage.
 */
function stageOfThread(name: string): number | null {
  const m = STAGE_NAME.exec(name);
  return m ? Number(m[1]) : null;
}

/** A thread's rank; -1 where it is not believed. */
function rankOfThread(thread: number): number {
  const rank = Math.floor(thread / LANES);
  return rank >= 0 && rank < MAX_RANKS ? rank : -1;
}

/** `stages`: rank → stage, as far as threads were named. */
function workersOf(
  { process, thread }: Readonly<StageColumnSet>,
  stages: ReadonlyMap<number, number>,
): Workers {
  const rank = Int32Array.from(thread, rankOfThread);
  const isGuess = rank.some((r) => r >= 0 && !stages.has(r));
  const known = isGuess ? guessed(process, rank) : stages;
  return { rank, stage: Int32Array.from(rank, (r) => known.get(r) ?? -1), isGuess };
}

/** A cut file has no names. Ranks of one replica stand in the order of their stages: Megatron puts pipelines outermost. */
function guessed(process: Int32Array, rank: Int32Array): Map<number, number> {
  const ranksOf = new Map<number, Set<number>>();
  for (let i = 0; i < rank.length; i++) {
    getOrInsert(ranksOf, process[i]!, () => new Set()).add(rank[i]!);
  }
  const stages = new Map<number, number>();
  for (const ranks of ranksOf.values()) {
    [...ranks].sort((a, b) => a - b).forEach((r, stage) => stages.set(r, stage));
  }
  return stages;
}
