/**
 * What pipeline stages did as a Parquet table, one row an operation: the traces that ByteDance's StragglerAnalysis reads
 * (its README tells the columns; times are seconds since the step began). A communication's row begins when its own rank
 * called it: what counts as its duration begins, as in the timeline that the tool writes, when the last partner has.
 */
import type { Reading } from "../../model/reading.ts";
import { OPERATION_KINDS, type StageOperations } from "../../model/stage-operations.ts";
import type { ParquetFile } from "../metric-table/parquet-columns.ts";
import { MAX_OPERATIONS } from "./stage-columns.ts";

/**
 * Operations of stages by the names that ByteDance's StragglerAnalysis gives them (analyzer/metatypes.py).
 */
export const KINDS = [
  ...OPERATION_KINDS,
  // Written by the same tool for other jobs; nothing asks for them yet.
  "data-load",
  "data-sync",
  "backward-wgrad-compute",
  "forward-backward",
  "forward-send-backward-recv",
  "backward-send-forward-recv",
  "grads-reduce-scatter-nonoverlapping",
  "params-all-gather-nonoverlapping",
  "optimizer-inner-step",
  "tp-reducescatter",
  "tp-allgather",
  "tp-allreduce",
] as const;
export const KIND_OF: ReadonlyMap<unknown, number> = new Map(KINDS.map((name, i) => [name, i]));

const FORMAT = "stage-parquet";
const COLUMNS = ["dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id"];
const MS = 1000;

/** Whether these are the columns of such a trace. */
export function isStageTable(names: readonly string[]): boolean {
  return COLUMNS.every((name) => names.includes(name));
}

type Table = Pick<ParquetFile, "columns" | "groups" | "values" | "numbers">;

export function readStageTable(file: string, parquet: Table): Reading {
  const rows = parquet.groups.reduce((sum, group) => sum + group, 0);
  const about = { file, format: FORMAT };
  if (rows > MAX_OPERATIONS)
    return {
      ...about,
      rank: null,
      records: 0,
      defects: [{ file, what: `${rows} operations are too many` }],
    };
  const names = new Set(parquet.columns.map(({ name }) => name));
  const column = (name: string): Float64Array => {
    const all = new Float64Array(rows).fill(-1);
    let at = 0;
    parquet.groups.forEach((count, group) => {
      if (names.has(name)) all.set(parquet.numbers(group, name), at);
      at += count;
    });
    return all;
  };
  const whole = (name: string): Int32Array => Int32Array.from(column(name));
  const kind = kindsOf(parquet, rows);
  const table = {
    ...about,
    writer: null,
    rank: whole("rank"),
    replica: whole("dp_rank"),
    stage: whole("stage"),
    step: whole("step"),
    kind: Uint8Array.from(kind, (one) => Math.max(0, one)),
    kinds: KINDS,
    microBatch: whole("mb_id"),
    chunk: whole("mc"),
    seq: whole("seq_id"),
    startMs: column("start_ts").map((s) => s * MS),
    durationMs: column("duration").map((s) => s * MS),
  };
  const unknown = kind.reduce((sum, one) => sum + (one < 0 ? 1 : 0), 0);
  const defects = unknown > 0 ? [{ file, what: `${unknown} operations of unknown kinds` }] : [];
  if (unknown === rows) return { ...about, rank: null, records: 0, defects };
  const operations = unknown === 0 ? table : known(table, kind);
  beginWithTheLast(operations);
  return {
    ...about,
    rank: null,
    records: operations.kind.length,
    defects,
    stageOperations: [operations],
  };
}

function kindsOf(parquet: Table, rows: number): Int16Array {
  const kind = new Int16Array(rows);
  let at = 0;
  parquet.groups.forEach((count, group) => {
    parquet.values(group, "optype").forEach((name, i) => (kind[at + i] = KIND_OF.get(name) ?? -1));
    at += count;
  });
  return kind;
}

function known(table: StageOperations, kind: Int16Array): StageOperations {
  const isKnown = (_: number, i: number): boolean => kind[i]! >= 0;
  const { rank, replica, stage, step, microBatch, chunk, seq, startMs, durationMs } = table;
  return {
    ...table,
    rank: rank.filter(isKnown),
    replica: replica.filter(isKnown),
    stage: stage.filter(isKnown),
    step: step.filter(isKnown),
    kind: table.kind.filter(isKnown),
    microBatch: microBatch.filter(isKnown),
    chunk: chunk.filter(isKnown),
    seq: seq.filter(isKnown),
    startMs: startMs.filter(isKnown),
    durationMs: durationMs.filter(isKnown),
  };
}

/** Moves the beginnings of communication to when its last partner has called it; their ends stay. */
function beginWithTheLast({ startMs, durationMs, ...table }: StageOperations): void {
  const lastMs = new Map<string, number>();
  const keys = Array.from(startMs, (ms, i) => {
    const key = partners(table, i);
    if (key !== null) lastMs.set(key, Math.max(lastMs.get(key) ?? -Infinity, ms));
    return key;
  });
  keys.forEach((key, i) => {
    if (key === null) return;
    const endMs = startMs[i]! + durationMs[i]!;
    startMs[i] = lastMs.get(key)!;
    durationMs[i] = endMs - startMs[i];
  });
}

/** Of a send or receive: whose send it is, by how many stages further on. */
const SENT: Readonly<Record<string, readonly [kind: string, further: number]>> = {
  "forward-send": ["forward", 0],
  "forward-recv": ["forward", -1],
  "backward-send": ["backward", 0],
  "backward-recv": ["backward", 1],
};
/** Reductions by who takes part: the replicas of a stage, the stages of a replica, everybody. */
const OF_STAGE = ["params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce"];
const OF_REPLICA = "embedding-grads-all-reduce";
const OF_ALL = "optimizer-clip-main-grad";

/** What partners of one communication share; null for what a rank does alone. */
function partners(
  { kind, stage, replica, step, seq }: Omit<StageOperations, "startMs" | "durationMs">,
  i: number,
): string | null {
  const name: string = KINDS[kind[i]!]!;
  const turn = `${step[i]} ${seq[i]}`;
  const sent = SENT[name];
  if (sent) return `${sent[0]} ${replica[i]} ${stage[i]! + sent[1]} ${turn}`;
  if (OF_STAGE.includes(name)) return `${name} ${stage[i]} ${turn}`;
  if (name === OF_REPLICA) return `${name} ${replica[i]} ${turn}`;
  return name === OF_ALL ? `${name} ${turn}` : null;
}
