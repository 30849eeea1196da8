/** Stage operations whose number is not known beforehand, as they come out of a stream. */

/** What one file may cost: at 49 bytes an operation this is 1 GB. */
export const MAX_OPERATIONS = 20_000_000;
const FIRST_CAPACITY = 1024;

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

export class StageColumns {
  readonly #columns = {
    process: new Int32Array(0),
    thread: new Int32Array(0),
    step: new Int32Array(0),
    kind: new Uint8Array(0),
    microBatch: new Int32Array(0),
    chunk: new Int32Array(0),
    seq: new Int32Array(0),
    startMs: new Float64Array(0),
    durationMs: new Float64Array(0),
  };
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(row: StageRow): void {
    const i = this.#count++;
    if (i === this.#columns.kind.length) {
      this.#resize(Math.min(Math.max(2 * i, FIRST_CAPACITY), MAX_OPERATIONS));
    }
    const c = this.#columns;
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
  finish(): Readonly<StageColumnSet> {
    this.#resize(this.#count);
    return this.#columns;
  }

  #resize(n: number): void {
    const c = this.#columns;
    c.process = resized(c.process, new Int32Array(n));
    c.thread = resized(c.thread, new Int32Array(n));
    c.step = resized(c.step, new Int32Array(n));
    c.kind = resized(c.kind, new Uint8Array(n));
    c.microBatch = resized(c.microBatch, new Int32Array(n));
    c.chunk = resized(c.chunk, new Int32Array(n));
    c.seq = resized(c.seq, new Int32Array(n));
    c.startMs = resized(c.startMs, new Float64Array(n));
    c.durationMs = resized(c.durationMs, new Float64Array(n));
  }
}

export interface StageColumnSet {
  process: Int32Array<ArrayBuffer>;
  thread: Int32Array<ArrayBuffer>;
  step: Int32Array<ArrayBuffer>;
  kind: Uint8Array<ArrayBuffer>;
  microBatch: Int32Array<ArrayBuffer>;
  chunk: Int32Array<ArrayBuffer>;
  seq: Int32Array<ArrayBuffer>;
  startMs: Float64Array<ArrayBuffer>;
  durationMs: Float64Array<ArrayBuffer>;
}

function resized<T extends Int32Array | Uint8Array | Float64Array>(from: T, to: T): T {
  to.set(from.length > to.length ? from.subarray(0, to.length) : from);
  return to;
}
