/** Columns of a length not known beforehand. */
type Column = Float64Array | Float32Array | Int32Array | Uint32Array | Uint8Array;
type Columns = Readonly<Record<string, Column>>;

/** Small: a file may hold the operators of thousands of processes. */
export const FIRST_CAPACITY = 64;

export class GrowingTable<C extends Columns> {
  columns: C;
  count = 0;
  /** Rows that found no place. */
  refused = 0;
  readonly #most: number;
  #capacity = FIRST_CAPACITY;

  /** `allocate` makes the columns for so many rows; `most` is what they may hold. */
  constructor(allocate: (n: number) => C, most: number) {
    this.columns = allocate(FIRST_CAPACITY);
    this.#most = most;
  }

  /** The number of a new row, to be filled by the caller; -1 where the table is full. */
  add(): number {
    if (this.count === this.#capacity) {
      if (this.count >= this.#most) {
        this.refused++;
        return -1;
      }
      this.#capacity = Math.min(Math.ceil(1.6 * this.#capacity), this.#most);
      this.#replace((column) => copied(column, this.#capacity));
    }
    return this.count++;
  }

  /** The columns at their length, in the order given; the table is empty afterwards. */
  take(order: Uint32Array | null): C {
    const { count } = this;
    this.#replace((column) => (order ? picked(column, order) : column.slice(0, count)));
    const taken = this.columns;
    this.#replace((column) => like(column, FIRST_CAPACITY));
    this.#capacity = FIRST_CAPACITY;
    this.count = 0;
    return taken;
  }

  /** One column after the other, so that never all of them are there twice. */
  #replace(by: (column: Column) => Column): void {
    const columns: Record<string, Column> = { ...this.columns };
    for (const name of Object.keys(columns)) {
      columns[name] = by(columns[name]!);
      this.columns = columns as C;
    }
  }
}

/** The order of ascending times, equal ones as they came; null where they are in order already. */
export function orderOf(times: Float64Array, count: number): Uint32Array | null {
  let isSorted = true;
  for (let i = 1; i < count && isSorted; i++) isSorted = times[i]! >= times[i - 1]!;
  if (isSorted) return null;
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  return order.sort((a, b) => times[a]! - times[b]! || a - b);
}

function copied(column: Column, n: number): Column {
  const larger = like(column, n);
  larger.set(column);
  return larger;
}

function picked(column: Column, order: Uint32Array): Column {
  const out = like(column, order.length);
  for (let i = 0; i < order.length; i++) out[i] = column[order[i]!]!;
  return out;
}

function like(column: Column, n: number): Column {
  return new (column.constructor as new (n: number) => Column)(n);
}
