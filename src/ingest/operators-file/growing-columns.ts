/**
 * An operator table whose length is not known beforehand. Used where operators come one by one out of a stream;
 * the flight recorder's builder knows its number from the start.
 */
import type { OperatorTable } from "../../model/operators.ts";

/** What one file may cost: at 79 bytes an operator this is 1.6 GB. */
export const MAX_OPERATORS = 20_000_000;
/** Small: a file may hold the operators of thousands of processes. */
export const FIRST_CAPACITY = 64;
/** Distinct names: one a collective and two a peer, so that only a hostile file has more. */
const MAX_NAMES = 1 << 18;

/** One operator on its way into the columns; callers use the same object for all. */
interface OperatorRow {
  group: number;
  name: number;
  seq: number;
  p2pSeq: number;
  state: number;
  isP2p: boolean;
  peer: number;
  isSend: boolean;
  createdNs: number;
  startedNs: number;
  completedNs: number;
  durationMs: number;
  inputNumel: number;
}

export function emptyRow(): OperatorRow {
  return {
    group: 0,
    name: 0,
    seq: 0,
    p2pSeq: 0,
    state: 0,
    isP2p: false,
    peer: -1,
    isSend: false,
    createdNs: NaN,
    startedNs: NaN,
    completedNs: NaN,
    durationMs: NaN,
    inputNumel: NaN,
  };
}

export class GrowingColumns {
  #columns = allocate(0);
  #count = 0;
  readonly #names = new Map<string, number>();

  get count(): number {
    return this.#count;
  }

  /** The number of a name; of `otherwise` where there are too many names already. */
  name(text: string, otherwise: string): number {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    if (this.#names.size >= MAX_NAMES && text !== otherwise) return this.name(otherwise, otherwise);
    this.#names.set(text, this.#names.size);
    return this.#names.size - 1;
  }

  add(row: OperatorRow): void {
    const i = this.#count++;
    if (i === this.#columns.group.length) {
      grow(this.#columns, Math.min(Math.max(2 * i, FIRST_CAPACITY), MAX_OPERATORS));
    }
    const c = this.#columns;
    c.group[i] = row.group;
    c.name[i] = row.name;
    c.seq[i] = row.seq;
    c.p2pSeq[i] = row.p2pSeq;
    c.state[i] = row.state;
    c.isP2p[i] = row.isP2p ? 1 : 0;
    c.peer[i] = row.peer;
    c.isSend[i] = row.isSend ? 1 : 0;
    c.createdNs[i] = row.createdNs;
    c.startedNs[i] = row.startedNs;
    c.completedNs[i] = row.completedNs;
    c.durationMs[i] = row.durationMs;
    c.inputNumel[i] = row.inputNumel;
  }

  /**
   * The table; the columns here are given up. With `sort` the operators come in the order in which they were
   * created, if all of them have such a time; recordId then still tells the order in which they were added.
   */
  build(sort: boolean): OperatorTable {
    const n = this.#count;
    const columns = this.#columns;
    const order = sort ? orderOf(columns.createdNs.subarray(0, n)) : null;
    for (const name of NAMES) replace(columns, name, (column) => picked(column, n, order));
    this.#columns = allocate(0);
    this.#count = 0;
    return {
      ...columns,
      count: n,
      recordId: order ? Float64Array.from(order) : Float64Array.from({ length: n }, (_, i) => i),
      outputNumel: new Float64Array(n).fill(NaN),
      dtype: new Int32Array(n).fill(-1),
      names: [...this.#names.keys()],
      dtypes: [],
    };
  }
}

/** Null where there is nothing to sort: times are missing, or in order already. Equal times stay as they were. */
function orderOf(times: Float64Array): Uint32Array | null {
  let sorted = true;
  for (let i = 0; i < times.length; i++) {
    if (Number.isNaN(times[i])) return null;
    if (i > 0 && times[i]! < times[i - 1]!) sorted = false;
  }
  if (sorted) return null;
  const order = Uint32Array.from({ length: times.length }, (_, i) => i);
  return order.sort((a, b) => times[a]! - times[b]! || a - b);
}

type Columns = ReturnType<typeof allocate>;
type Column = Columns[keyof Columns];
const NAMES = Object.keys(allocate(0)) as (keyof Columns)[];

function allocate(n: number) {
  return {
    group: new Int32Array(n),
    name: new Int32Array(n),
    seq: new Int32Array(n),
    p2pSeq: new Int32Array(n),
    state: new Uint8Array(n),
    isP2p: new Uint8Array(n),
    peer: new Int32Array(n),
    isSend: new Uint8Array(n),
    createdNs: new Float64Array(n),
    startedNs: new Float64Array(n),
    completedNs: new Float64Array(n),
    durationMs: new Float32Array(n),
    inputNumel: new Float64Array(n),
  };
}

/** One column after the other, so that never all of them are there twice. */
function grow(columns: Columns, n: number): void {
  for (const name of NAMES) {
    replace(columns, name, (column) => {
      const larger = like(column, n);
      larger.set(column);
      return larger;
    });
  }
}

function picked<T extends Column>(column: T, n: number, order: Uint32Array | null): T {
  if (!order) return column.slice(0, n) as T;
  const out = like(column, n);
  for (let i = 0; i < n; i++) out[i] = column[order[i]!]!;
  return out;
}

function like<T extends Column>(column: T, n: number): T {
  return new (column.constructor as new (n: number) => T)(n);
}

function replace<K extends keyof Columns>(
  columns: Columns,
  name: K,
  by: (column: Columns[K]) => Columns[K],
): void {
  columns[name] = by(columns[name]);
}
