/** The columns of an OperatorTable while it is read: writable. */
export type Columns = ReturnType<typeof allocateColumns>;

export function allocateColumns(n: number) {
  return {
    group: new Int32Array(n),
    name: new Int32Array(n),
    seq: new Int32Array(n),
    p2pSeq: new Int32Array(n),
    recordId: new Float64Array(n),
    state: new Uint8Array(n),
    isP2p: new Uint8Array(n),
    peer: new Int32Array(n),
    isSend: new Uint8Array(n),
    createdNs: new Float64Array(n),
    startedNs: new Float64Array(n),
    completedNs: new Float64Array(n),
    durationMs: new Float32Array(n),
    inputNumel: new Float64Array(n),
    outputNumel: new Float64Array(n),
    dtype: new Int32Array(n),
  };
}

/** The given rows of each column; the columns themselves where that is all of them. */
export function pickRows(columns: Columns, rows: Int32Array): Columns {
  if (rows.length === columns.group.length) return columns;
  return Object.fromEntries(
    Object.entries(columns).map(([name, column]) => {
      const picked = column.slice(0, rows.length);
      for (let i = 0; i < rows.length; i++) picked[i] = column[rows[i]!]!;
      return [name, picked];
    }),
  ) as Columns;
}
