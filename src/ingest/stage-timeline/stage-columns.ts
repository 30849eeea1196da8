/** Stage operations whose number is not known beforehand, as they come out of a stream. */
import { GrowingTable } from "../growing-table.ts";

/** What one file may cost: at 49 bytes an operation this is 1 GB. */
export const MAX_OPERATIONS = 20_000_000;

/** One operation on its way into the columns; the reader uses the same object for all. */
export interface StageRow {
  process: number;
  thread: number;
  step: number;
  kind: number;
  microBatch: number;
  chunk: number;
  seq: number;
  startMs: number;
  durationMs: number;
}

/** The columns for so many operations. */
export function stageColumns(n: number) {
  return {
    process: new Int32Array(n),
    thread: new Int32Array(n),
    step: new Int32Array(n),
    kind: new Uint8Array(n),
    microBatch: new Int32Array(n),
    chunk: new Int32Array(n),
    seq: new Int32Array(n),
    startMs: new Float64Array(n),
    durationMs: new Float64Array(n),
  };
}

export type StageColumnSet = ReturnType<typeof stageColumns>;

export class StageColumns {
  readonly #table = new GrowingTable(stageColumns, MAX_OPERATIONS);

  get count(): number {
    return this.#table.count;
  }

  add(row: StageRow): void {
    const i = this.#table.add();
    const c = this.#table.columns;
    c.process[i] = row.process;
    c.thread[i] = row.thread;
    c.step[i] = row.step;
    c.kind[i] = row.kind;
    c.microBatch[i] = row.microBatch;
    c.chunk[i] = row.chunk;
    c.seq[i] = row.seq;
    c.startMs[i] = row.startMs;
    c.durationMs[i] = row.durationMs;
  }

  /** The columns at their true length. */
  finish(): StageColumnSet {
    return this.#table.take(null);
  }
}
