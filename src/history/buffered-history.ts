/**
 * A history whose store may go away and come back: puts wait in order and are tried again, so that nothing is lost
 * while the service lives. The queue is bounded: of iterations the oldest go first; records (incidents, audit, jobs,
 * documents) go only beyond a bound of their own. Reads go straight to the store.
 */
import { errorText } from "../base/errors.ts";
import { setTimeout as pause } from "node:timers/promises";
import type { History } from "./history.ts";
import { storedIterations, Unstorable } from "./stored-rows.ts";

/**
 * Puts in the order in which they came, bounded. Puts of one lane (a job's row, a document, a run's iterations, an
 * incident) must reach the store in this order; others do not depend on each other.
 */
interface NewPut {
  readonly lane: string;
  /** A newer one takes the place of one that still waits. */
  readonly replaces: boolean;
  /** 0 for records. */
  readonly iterationRows: number;
  store(this: void): Promise<void>;
  /** Called with null when it is stored; null where nobody waits for it. */
  readonly settled: ((error: Error | null) => void) | null;
}

interface Put {
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

export interface BufferOptions {
  /** When a put's promise resolves: as soon as it waits in memory, or when the store has it. */
  readonly acknowledge: "queued" | "stored";
  readonly mostIterationRows?: number;
  readonly mostRecords?: number;
  /** Of puts handed to the store at once. */
  readonly atOnce?: number;
  readonly firstDelayMs?: number;
  readonly mostDelayMs?: number;
  /** How long close() waits for the store to take what still waits. */
  readonly closeWithinMs?: number;
  /** One line: the store went away, came back, or something was lost. */
  readonly onTrouble?: (line: string) => void;
}

interface BufferedHistory extends History {
  /** Puts that wait for the store. */
  readonly pending: number;
  /** Puts that the store did not take, each try counted. */
  readonly failures: number;
  /** Puts that were given up: the queue was full, no store can keep them, or the service ended. */
  readonly lost: number;
}

export function bufferHistory(store: History, options: BufferOptions): BufferedHistory {
  const {
    acknowledge,
    mostIterationRows = 2_000_000,
    mostRecords = 100_000,
    atOnce = 1000,
    firstDelayMs = 100,
    mostDelayMs = 5000,
    closeWithinMs = 5000,
    onTrouble = () => {},
  } = options;
  let failures = 0;
  let lost = 0;
  let working: Promise<void> | null = null;
  let isClosed = false;
  let isDown = false;
  const giveUp = new AbortController();
  const waiting = makeWaitingPuts({ mostIterationRows, mostRecords }, (put) => {
    lose(put, "the queue is full");
  });

  function lose(put: Put, why: string): void {
    lost++;
    put.settle(new Error(`not stored: ${why}`));
    if (lost === 1 || lost % 1000 === 0) onTrouble(`history: ${lost} puts lost so far, ${why}`);
  }

  async function round(): Promise<"all" | "some" | "none"> {
    const puts = waiting.take(atOnce);
    // Handed over together, in order: the store makes one transaction of them.
    const results = await Promise.allSettled(puts.map(async (put) => await put.store()));
    const done: Put[] = [];
    const late = new Set<string>();
    let reason: unknown = null;
    for (const [i, put] of puts.entries()) {
      const result = results[i]!;
      if (result.status === "rejected") {
        failures++;
        if (result.reason instanceof Unstorable) {
          done.push(put);
          lose(put, errorText(result.reason));
          continue;
        }
        reason ??= result.reason;
        late.add(put.lane);
      }
      // Behind one that failed a later put of its lane is written again, so that it stays the later one.
      if (late.has(put.lane)) continue;
      done.push(put);
      put.settle(null);
    }
    waiting.release(done);
    const isLate = late.size > 0;
    if (isLate && !isDown) {
      onTrouble(`history: the store does not take what is put: ${errorText(reason)}`);
    } else if (!isLate && isDown) {
      onTrouble("history: the store takes what is put again");
    }
    isDown = isLate;
    return isLate ? (done.length > 0 ? "some" : "none") : "all";
  }

  async function work(): Promise<void> {
    let delayMs = firstDelayMs;
    while (waiting.count > 0 && !giveUp.signal.aborted) {
      const took = await round();
      if (took !== "none") delayMs = firstDelayMs;
      if (took === "all") continue;
      await pause(delayMs, undefined, { signal: giveUp.signal }).catch(() => {});
      delayMs = Math.min(delayMs * 2, mostDelayMs);
    }
    working = null;
  }

  async function put(what: Omit<NewPut, "settled">): Promise<void> {
    if (isClosed) throw new Error("the history is closed");
    const begin = (settled: NewPut["settled"]): void => {
      waiting.add({ ...what, settled });
      working ??= Promise.resolve().then(work);
    };
    // Whoever does not wait for it learns of a loss by the counters.
    if (acknowledge === "queued") return begin(null);
    await new Promise<void>((resolve, reject) => {
      begin((error) => (error === null ? resolve() : reject(error)));
    });
  }
  const record = async (lane: readonly string[], store: () => Promise<void>, replaces = false) =>
    // JSON of names: no two lists of them look the same.
    await put({ lane: JSON.stringify(lane), replaces, iterationRows: 0, store });

  return {
    get pending() {
      return waiting.count;
    },
    get failures() {
      return failures;
    },
    get lost() {
      return lost;
    },
    putJob: async (row) => await record(["job", row.job, row.run], () => store.putJob(row), true),
    putIncident: async (incident) =>
      await record(["incident", incident.id], () => store.putIncident(incident)),
    putAudit: async (row) => await record(["audit", row.id], () => store.putAudit(row)),
    async putIterations(job, run, rows) {
      const copy = storedIterations(rows);
      const iterationRows = copy.iteration.length;
      if (iterationRows === 0) return;
      const lane = JSON.stringify(["iterations", job, run]);
      const storeIt = (): Promise<void> => store.putIterations(job, run, copy);
      await put({ lane, replaces: false, iterationRows, store: storeIt });
    },
    putDocument: async (key, document) =>
      await record(["document", key], () => store.putDocument(key, document), true),
    jobs: async (most) => await store.jobs(most),
    incidents: async (query) => await store.incidents(query),
    incidentHistory: async (id) => await store.incidentHistory(id),
    audit: async (query) => await store.audit(query),
    iterations: async (job, run, query) => await store.iterations(job, run, query),
    offenders: async (...asked) => await store.offenders(...asked),
    document: async (key) => await store.document(key),
    documentKeys: async (prefix) => await store.documentKeys(prefix),
    async prune(beforeMs) {
      await store.prune?.(beforeMs);
    },
    ping: async () => await store.ping(),
    async close() {
      if (isClosed) return;
      isClosed = true;
      // A store that hangs is not waited for longer either.
      const late = new Promise<void>((resolve) => {
        giveUp.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      const timer = setTimeout(() => giveUp.abort(), closeWithinMs);
      await Promise.race([working, late]);
      clearTimeout(timer);
      giveUp.abort();
      const rest = waiting.take(waiting.count);
      waiting.release(rest);
      for (const one of rest) lose(one, "the store was away until the end");
      await store.close();
    },
  };
}

function makeWaitingPuts(
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
