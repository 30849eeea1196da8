/**
 * The latest replicas of every column (a stage, say), kept while replicas change one by one: a column is looked through
 * anew only when fewer than three of the latest are known, as one of three is always untouched by a swap of two.
 */
const KEPT = 8;
const NEEDED = 3;

export interface Latest {
  /** Looks through all columns; values are those given by `put`. */
  fill(): void;
  /** A value that is not compared yet, before `fill`. */
  put(column: number, replica: number, value: number): void;
  set(column: number, replica: number, value: number): void;
  /** Of all replicas but these two; -Infinity where there is no other. */
  without(column: number, a: number, b: number): number;
  max(column: number): number;
  /** The replica of `max`, the first of several. */
  who(column: number): number;
  /** Values looked at when columns were looked through. */
  readonly looked: number;
}

export function makeLatest(columns: number, replicas: number): Latest {
  const values = new Float64Array(columns * replicas);
  const top = new Int32Array(columns * KEPT);
  const counts = new Uint8Array(columns);
  let looked = 0;

  /** Latest first, then by number; what is not among the kept comes after all of them. */
  const insert = (column: number, replica: number, isComplete: boolean): void => {
    const at = column * KEPT;
    const base = column * replicas;
    const value = values[base + replica]!;
    const count = counts[column]!;
    let i = at + count;
    while (i > at) {
      const other = top[i - 1]!;
      const otherValue = values[base + other]!;
      if (otherValue > value || (otherValue === value && other < replica)) break;
      i--;
    }
    // Behind the last of those kept may be others that are not.
    if (i === at + count && (!isComplete || count === KEPT)) return;
    const last = Math.min(count, KEPT - 1);
    for (let j = at + last; j > i; j--) top[j] = top[j - 1]!;
    top[i] = replica;
    counts[column] = last + 1;
  };

  const lookThrough = (column: number): void => {
    counts[column] = 0;
    looked += replicas;
    for (let r = 0; r < replicas; r++) insert(column, r, true);
  };

  return {
    get looked() {
      return looked;
    },
    fill() {
      for (let c = 0; c < columns; c++) lookThrough(c);
    },
    put(column, replica, value) {
      values[column * replicas + replica] = value;
    },
    set(column, replica, value) {
      const at = column * KEPT;
      const count = counts[column]!;
      let i = 0;
      while (i < count && top[at + i] !== replica) i++;
      if (i < count) {
        for (; i + 1 < count; i++) top[at + i] = top[at + i + 1]!;
        counts[column] = count - 1;
      }
      values[column * replicas + replica] = value;
      insert(column, replica, counts[column] === replicas - 1);
      if (counts[column]! < NEEDED && counts[column]! < replicas) lookThrough(column);
    },
    without(column, a, b) {
      const at = column * KEPT;
      for (let i = at; i < at + counts[column]!; i++)
        if (top[i] !== a && top[i] !== b) return values[column * replicas + top[i]!]!;
      return -Infinity;
    },
    max: (column) => values[column * replicas + top[column * KEPT]!]!,
    who: (column) => top[column * KEPT]!,
  };
}
