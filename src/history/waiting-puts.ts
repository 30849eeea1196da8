/**
 * Puts in the order in which they came, bounded. Puts of one lane (a job's row, a document, a run's iterations, an
 * incident) must reach the store in this order; others do not depend on each other.
 */
export interface NewPut {
  readonly lane: string;
  /** A newer one takes the place of one that still waits. */
  readonly replaces: boolean;
  /** 0 for records. */
  readonly iterationRows: number;
  store(this: void): Promise<void>;
  /** Called with null when it is stored; null where nobody waits for it. */
  readonly settled: ((error: Error | null) => void) | null;
}

export interface Put {
  readonly lane: string;
  readonly iterationRows: number;
  readonly store: () => Promise<void>;
  /** Tells whoever waits for it, and for those whose place it took. */
  settle(error: Error | null): void;
}

interface WaitingPuts {
  readonly count: number;
  add(put: NewPut): void;
  /** The oldest; nothing takes their place until they are released. */
  take(most: number): readonly Put[];
  /** Forgets those that are done with; the others of the last `take` wait again. */
  release(done: readonly Put[]): void;
}

interface OwnPut extends Put {
  store: () => Promise<void>;
  readonly waiters: ((error: Error | null) => void)[];
}

export function makeWaitingPuts(
  bounds: { readonly mostIterationRows: number; readonly mostRecords: number },
  onDropped: (put: Put) => void,
): WaitingPuts {
  // Sets keep the order and forget in constant time.
  const all = new Set<OwnPut>();
  const iterations = new Set<OwnPut>();
  const records = new Set<OwnPut>();
  const replaceable = new Map<string, OwnPut>();
  let taken: ReadonlySet<Put> = new Set();
  let rows = 0;

  function forget(put: OwnPut): void {
    if (!all.delete(put)) return;
    if (iterations.delete(put)) rows -= put.iterationRows;
    records.delete(put);
    if (replaceable.get(put.lane) === put) replaceable.delete(put.lane);
  }

  function dropOldest(among: ReadonlySet<OwnPut>): void {
    for (const put of among) {
      forget(put);
      onDropped(put);
      return;
    }
  }

  return {
    get count() {
      return all.size;
    },
    add({ lane, replaces, iterationRows, store, settled }) {
      const before = replaces ? replaceable.get(lane) : undefined;
      if (before !== undefined && !taken.has(before)) {
        before.store = store;
        if (settled !== null) before.waiters.push(settled);
        return;
      }
      const waiters = settled === null ? [] : [settled];
      const settle = (error: Error | null): void => {
        for (const tell of waiters) tell(error);
      };
      const put: OwnPut = { lane, iterationRows, store, waiters, settle };
      all.add(put);
      if (replaces) replaceable.set(lane, put);
      if (iterationRows > 0) {
        iterations.add(put);
        rows += iterationRows;
      } else {
        records.add(put);
      }
      // The newest stays, however large.
      while (rows > bounds.mostIterationRows && iterations.size > 1) dropOldest(iterations);
      while (records.size > bounds.mostRecords) dropOldest(records);
    },
    take(most) {
      const puts: OwnPut[] = [];
      for (const put of all) {
        if (puts.length >= most) break;
        puts.push(put);
      }
      taken = new Set(puts);
      return puts;
    },
    release(done) {
      for (const put of done) forget(put as OwnPut);
      taken = new Set();
    },
  };
}
