/**
 * An operator table whose length is not known beforehand. Used where operators come one by one out of a stream;
 * the flight recorder's builder knows its number from the start.
 */
import type { OperatorTable } from "../../model/operators.ts";
import { GrowingTable, orderOf } from "../growing-table.ts";
import { allocateColumns } from "../operator-columns.ts";

/** What one file may cost: at 99 bytes an operator this is 2 GB. */
export const MAX_OPERATORS = 20_000_000;
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
  readonly #table = new GrowingTable(allocateColumns, MAX_OPERATORS);
  readonly #names = new Map<string, number>();

  get count(): number {
    return this.#table.count;
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
    const i = this.#table.add();
    const c = this.#table.columns;
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
    const { count: n, columns } = this.#table;
    const created = columns.createdNs.subarray(0, n);
    const order = sort && !created.some(Number.isNaN) ? orderOf(created, n) : null;
    const taken = this.#table.take(order);
    for (let i = 0; i < n; i++) taken.recordId[i] = order ? order[i]! : i;
    taken.outputNumel.fill(NaN);
    taken.dtype.fill(-1);
    return { ...taken, count: n, names: [...this.#names.keys()], dtypes: [] };
  }
}
