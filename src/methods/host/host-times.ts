/**
 * What each iteration's time went to in Python, rank by rank: garbage collection, loading data, synchronisation and
 * communication. What nests counts for the inner one: a collection inside the loader is a collection.
 */
import { largest } from "../../base/numbers.ts";
import { overlapWith, unionOf, without, type Intervals } from "../../maths/intervals.ts";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import {
  callPurpose,
  COLLECTION,
  ITERATION,
  PYTHON_CALL,
  type CallPurpose,
  type HostCalls,
  type ProbeProcess,
} from "../../model/probe.ts";

const PURPOSES = [
  "garbage-collection",
  "dataloader",
  "synchronization",
  "communication",
] as const satisfies readonly CallPurpose[];

export interface HostTimes {
  readonly rank: Rank;
  readonly file: string;
  /** Number of each iteration that has ended, and what it took. */
  readonly iteration: readonly number[];
  readonly durationMs: readonly number[];
  /** By iteration: milliseconds, and calls. */
  readonly ms: Readonly<Record<CallPurpose, readonly number[]>>;
  readonly count: Readonly<Record<CallPurpose, readonly number[]>>;
  /** The function that most of it was spent in, by purpose; "" for none. */
  readonly name: Readonly<Record<CallPurpose, string>>;
}

/** Of every rank whose ring has iterations. */
export function hostTimes(job: Job): HostTimes[] {
  const times: HostTimes[] = [];
  for (const { rank, file, calls } of withCalls(job)) {
    const rows = endedIterations(calls);
    if (rank !== null && rows.length > 0) times.push(timesOf(rank, file, calls, rows));
  }
  return times.sort((a, b) => a.rank - b.rank);
}

/** One a rank: calls are in the ring of the probe that wrote them, native or Python. */
export function withCalls(job: Job): ProbeProcess[] {
  return (job.probes ?? []).filter(({ calls }) => calls.count > 0);
}

function endedIterations(calls: HostCalls): number[] {
  const rows: number[] = [];
  for (let i = 0; i < calls.count; i++)
    if (calls.kind[i] === ITERATION && calls.endNs[i]! > calls.startNs[i]!) rows.push(i);
  return rows;
}

function timesOf(rank: Rank, file: string, calls: HostCalls, rows: readonly number[]): HostTimes {
  const thread = mainThread(calls);
  const purposes = calls.names.map(callPurpose);
  const purposeOf = (i: number): CallPurpose | null => {
    if (!Number.isFinite(calls.endNs[i]!)) return null;
    if (calls.kind[i] === COLLECTION) return "garbage-collection";
    if (calls.kind[i] !== PYTHON_CALL || calls.thread[i] !== thread) return null;
    return purposes[calls.name[i]!] ?? null;
  };
  const durNs = calls.endNs.map((end, i) => end - calls.startNs[i]!);
  const spans = byPurpose((purpose) =>
    unionOf(calls.startNs, durNs, calls.count, (i) => purposeOf(i) === purpose),
  );
  const ms = byPurpose((purpose) => {
    const isInner = purpose === "garbage-collection";
    const own = isInner ? spans[purpose] : without(spans[purpose], spans["garbage-collection"]);
    return rows.map((row) => overlapWith(own, calls.startNs[row]!, calls.endNs[row]!) / 1e6);
  });
  return {
    rank,
    file,
    iteration: rows.map((row) => calls.detail[row]!),
    durationMs: rows.map((row) => durNs[row]! / 1e6),
    ms,
    count: byPurpose((purpose) => countsOf(spans[purpose], calls, rows)),
    name: byPurpose((purpose) => longest(calls, durNs, (i) => purposeOf(i) === purpose)),
  };
}

/** The thread that steps the optimizer; where none is seen, the one with most calls. */
export function mainThread(calls: HostCalls): number {
  const counts = new Map<number, number>();
  for (let i = 0; i < calls.count; i++) {
    if (calls.kind[i] !== PYTHON_CALL) continue;
    const isStep = /Optimizer\.step/.test(calls.names[calls.name[i]!] ?? "");
    const thread = calls.thread[i]!;
    counts.set(thread, (counts.get(thread) ?? 0) + (isStep ? 1e6 : 1));
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0]?.[0] ?? -1;
}

/** Both ascend: one pass. */
function countsOf(spans: Intervals, calls: HostCalls, rows: readonly number[]): number[] {
  const counts = rows.map(() => 0);
  let at = 0;
  for (const start of spans.start) {
    while (at < rows.length && calls.endNs[rows[at]!]! <= start) at++;
    const row = rows[at];
    if (row === undefined) break;
    if (start >= calls.startNs[row]!) counts[at]!++;
  }
  return counts;
}

function longest(calls: HostCalls, durNs: Float64Array, isOf: (i: number) => boolean): string {
  const total = new Map<number, number>();
  for (let i = 0; i < calls.count; i++)
    if (isOf(i)) total.set(calls.name[i]!, (total.get(calls.name[i]!) ?? 0) + durNs[i]!);
  const most = largest(total.values(), -1);
  const [name] = [...total].find(([, ns]) => ns === most) ?? [-1];
  return calls.names[name] ?? "";
}

function byPurpose<T>(make: (purpose: CallPurpose) => T): Record<CallPurpose, T> {
  return Object.fromEntries(PURPOSES.map((purpose) => [purpose, make(purpose)])) as Record<
    CallPurpose,
    T
  >;
}
