/** Columns that grow. */
type Column = Int32Array | Uint32Array | Float64Array | Uint8Array | Int16Array;

/** The column itself where it has room for `size`, else one of at least twice the length. */
export function grown<T extends Column>(column: T, size: number): T {
  if (size <= column.length) return column;
  const Kind = column.constructor as new (length: number) => T;
  const next = new Kind(Math.max(size, column.length * 2, 16));
  next.set(column);
  return next;
}
