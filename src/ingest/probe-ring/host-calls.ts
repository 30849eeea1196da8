/** What Python did: calls, collections, iterations. */
import { COLLECTION, ITERATION, PYTHON_CALL, type HostCalls } from "../../model/probe.ts";
import type { IterationSeries } from "../../model/series.ts";
import { KIND, NONE, RECORD } from "./layout.ts";
import { ascendingOrder } from "./natural-order.ts";
import type { Records } from "./records.ts";
import { u64, type RingBytes } from "./ring-bytes.ts";

export function readCalls(ring: RingBytes, records: Records, names: readonly string[]): HostCalls {
  const { view } = ring;
  const kinds = new Map<number, number>([
    [KIND.pythonCall, PYTHON_CALL],
    [KIND.collection, COLLECTION],
    [KIND.iteration, ITERATION],
  ]);
  const rows = rowsOf(ring, records, (kind) => kinds.has(kind));
  const starts = rows.map((at) => startOf(ring, at));
  // A call that went on for long was written first and started first, but threads overtake each other.
  const order = ascendingOrder(starts);
  const n = rows.length;
  const calls = {
    kind: new Uint8Array(n),
    name: new Int32Array(n).fill(-1),
    startNs: new Float64Array(n),
    endNs: new Float64Array(n),
    thread: new Float64Array(n),
    detail: new Float64Array(n),
  };
  for (let i = 0; i < n; i++) {
    const at = rows[order[i]!]!;
    const kind = view.getUint8(at + RECORD.kind);
    const a = u64(view, at + RECORD.a);
    calls.kind[i] = kinds.get(kind)!;
    calls.startNs[i] = starts[order[i]!]!;
    calls.endNs[i] = ring.ns(at + RECORD.endedNs);
    if (kind === KIND.pythonCall) {
      const name = view.getUint16(at + RECORD.group, true);
      calls.name[i] = name !== NONE && name < names.length ? name : -1;
      calls.thread[i] = a;
      calls.detail[i] = view.getUint32(at + RECORD.b, true);
    } else if (kind === KIND.collection) {
      calls.detail[i] = view.getUint8(at + RECORD.func);
    } else calls.detail[i] = a;
  }
  return { count: n, ...calls, names };
}

/** Offsets of the records of some kinds. */
export function rowsOf(
  { view }: RingBytes,
  { at }: Records,
  isWanted: (kind: number) => boolean,
): Float64Array {
  return at.filter((from) => isWanted(view.getUint8(from + RECORD.kind)));
}

function startOf(ring: RingBytes, at: number): number {
  const started = ring.ns(at + RECORD.startedNs);
  return Number.isFinite(started) ? started : ring.ns(at + RECORD.issuedNs);
}

/**
 * Iterations that have ended. One takes from its start to the next one's start, because what lies between two marks
 * (loading, logging) is the job's time too; the last takes what its own mark says.
 */
export function readIterations(
  calls: HostCalls,
  epochNs: bigint,
  about: Pick<IterationSeries, "file" | "source" | "rank">,
): IterationSeries | null {
  const rows: number[] = [];
  for (let i = 0; i < calls.count; i++) {
    const isEnded = calls.kind[i] === ITERATION && Number.isFinite(calls.endNs[i]!);
    if (isEnded && Number.isFinite(calls.startNs[i]!)) rows.push(i);
  }
  if (rows.length === 0) return null;
  const epochMs = Number(epochNs / 1_000_000n);
  const n = rows.length;
  const lasted = rows.map((row, i) => {
    const next = rows[i + 1];
    const follows = next !== undefined && calls.detail[next] === calls.detail[row]! + 1;
    const until = follows ? calls.startNs[next]! : calls.endNs[row]!;
    return (until - calls.startNs[row]!) / 1e6;
  });
  return {
    ...about,
    basis: "reported",
    iteration: Float64Array.from(rows, (row) => calls.detail[row]!),
    durationMs: Float64Array.from(lasted),
    endMs: Float64Array.from(rows, (row) => epochMs + calls.endNs[row]! / 1e6),
    line: new Int32Array(n),
    batch: new Float64Array(n).fill(NaN),
    between: new Uint8Array(n),
  };
}
