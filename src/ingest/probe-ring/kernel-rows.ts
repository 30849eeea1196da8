/** The ring's timed products and operators in one table, before they are put in the order of their starts. */
import { getOrInsert } from "../../base/group-by.ts";
import { COMMUNICATION, COMPUTE, type InputShape } from "../../model/kernels.ts";
import type { OperatorTable } from "../../model/operators.ts";
import { rowsOf } from "./host-calls.ts";
import { DTYPES, KIND, RECORD } from "./layout.ts";
import type { Records } from "./records.ts";
import type { RingBytes } from "./ring-bytes.ts";

/** What only some kernels have is -1 in the others. */
export interface KernelRows {
  count: number;
  readonly startNs: Float64Array;
  readonly durNs: Float64Array;
  readonly issuedNs: Float64Array;
  readonly name: Int32Array;
  readonly stream: Int32Array;
  readonly kind: Uint8Array;
  readonly shape: Int32Array;
  /** Index of the operator. */
  readonly op: Int32Array;
}

/** Names and shapes as numbers. */
export class Kinds {
  readonly shapes: InputShape[] = [];
  readonly #names = new Map<string, number>();
  readonly #shapes = new Map<string, number>();
  /** Products of one shape come in runs: the last one is looked at first. */
  #last = { m: -1, n: -1, k: -1, batch: -1, type: "", id: -1 };

  get names(): string[] {
    return [...this.#names.keys()];
  }

  name(text: string): number {
    return getOrInsert(this.#names, text, () => this.#names.size);
  }

  shape(m: number, n: number, k: number, batch: number, type: string): number {
    const last = this.#last;
    if (last.m === m && last.n === n && last.k === k && last.batch === batch && last.type === type)
      return last.id;
    const id = getOrInsert(this.#shapes, `${m} ${n} ${k} ${batch} ${type}`, () => {
      const lead = batch > 1 ? [batch] : [];
      const dims = [
        [...lead, m, k],
        [...lead, k, n],
      ];
      return this.shapes.push({ dims, types: type === "" ? [] : [type, type] }) - 1;
    });
    this.#last = { m, n, k, batch, type, id };
    return id;
  }
}

/** null where nothing was timed. */
export function kernelRows(
  ring: RingBytes,
  records: Records,
  apis: readonly string[],
  ops: OperatorTable,
  kinds: Kinds,
): KernelRows | null {
  const products = rowsOf(ring, records, (kind) => kind === KIND.matrix || kind === KIND.kernel);
  const n = products.length + ops.count;
  const rows: KernelRows = {
    count: 0,
    startNs: new Float64Array(n),
    durNs: new Float64Array(n),
    issuedNs: new Float64Array(n),
    name: new Int32Array(n),
    stream: new Int32Array(n),
    kind: new Uint8Array(n),
    shape: new Int32Array(n).fill(-1),
    op: new Int32Array(n).fill(-1),
  };
  addProducts(ring, products, apis, rows, kinds);
  addOperators(ops, rows, kinds);
  return rows.count === 0 ? null : rows;
}

function addProducts(
  ring: RingBytes,
  products: Float64Array,
  apis: readonly string[],
  rows: KernelRows,
  kinds: Kinds,
): void {
  const { view } = ring;
  // The name tells the FLOPS metric that it is a plain product.
  const productNames = apis.map((api) => kinds.name(`${api}::mm`));
  const otherNames = apis.map((api) => kinds.name(api));
  const unnamed = kinds.name("gemm::mm");
  for (const from of products) {
    const startNs = ring.ns(from + RECORD.startedNs);
    const durNs = ring.ns(from + RECORD.endedNs) - startNs;
    if (!(durNs >= 0)) continue;
    const isProduct = view.getUint8(from + RECORD.kind) === KIND.matrix;
    const api = view.getUint16(from + RECORD.group, true);
    const row = rows.count++;
    rows.startNs[row] = startNs;
    rows.durNs[row] = durNs;
    rows.issuedNs[row] = ring.ns(from + RECORD.issuedNs);
    rows.stream[row] = view.getUint32(from + RECORD.e, true);
    rows.kind[row] = COMPUTE;
    rows.name[row] = (isProduct ? productNames : otherNames)[api] ?? unnamed;
    if (isProduct) rows.shape[row] = shapeAt(view, from, kinds);
  }
}

function shapeAt(view: DataView, from: number, kinds: Kinds): number {
  const m = view.getUint32(from + RECORD.a, true);
  const n = view.getUint32(from + RECORD.a + 4, true);
  const k = view.getUint32(from + RECORD.b, true);
  const batch = Math.max(1, view.getInt32(from + RECORD.c, true));
  const type = DTYPES[view.getUint8(from + RECORD.dtype)] ?? "";
  // All leading dimensions fit the tensor cores: whatever the sizes are, the layout is none to pad, and of a product
  // without a type nobody asks.
  const isAligned = view.getUint32(from + RECORD.d, true) === 0;
  return kinds.shape(m, n, k, batch, isAligned && isOdd(m, n, k, type) ? "" : type);
}

/** Whether sizes alone would make a reader think that the layout is bad. */
function isOdd(m: number, n: number, k: number, type: string): boolean {
  const perLoad = /8|^(?:Char|Byte)$/.test(type) ? 16 : 8;
  return m % perLoad !== 0 || n % perLoad !== 0 || k % perLoad !== 0;
}

/** The record does not say which; it is never the one that computes. */
const COMMUNICATION_STREAM = -1;

function addOperators(ops: OperatorTable, rows: KernelRows, kinds: Kinds): void {
  const names = ops.names.map((name) => kinds.name(operationOf(name)));
  for (let i = 0; i < ops.count; i++) {
    const durNs = ops.completedNs[i]! - ops.startedNs[i]!;
    if (!(durNs >= 0)) continue;
    const row = rows.count++;
    rows.startNs[row] = ops.startedNs[i]!;
    rows.durNs[row] = durNs;
    rows.issuedNs[row] = ops.createdNs[i]!;
    rows.stream[row] = COMMUNICATION_STREAM;
    rows.kind[row] = COMMUNICATION;
    rows.name[row] = names[ops.name[i]!]!;
    rows.op[row] = i;
  }
}

const KINETO_NAMES: Readonly<Record<string, string>> = {
  all_reduce: "allreduce",
  all_gather: "_allgather_base",
  reduce_scatter: "_reduce_scatter_base",
};

/** As Kineto names them: "allreduce", "_allgather_base", "send". */
function operationOf(name: string): string {
  return KINETO_NAMES[name] ?? name.replace(/ .*$/, "");
}
