/**
 * What stands behind short issue latencies (FLARE §5.2.4: which calls come just before the kernels that are issued
 * late). Before a kernel of the computing stream, the stream is idle from the end of the kernel before to the launch
 * wherever the launch comes later than that end: so long the GPU waited for the CPU, and what the CPU did then is
 * the cause. A kernel that waits for communication was launched long before, so waiting for others never counts.
 */
import { firstEndingAfter, overlapWith, unionOf, type Intervals } from "../../maths/intervals.ts";
import * as K from "../../model/kernels.ts";
import { STALL_CAUSES, type StallCause } from "../../model/trace-profile.ts";
import type { Measured } from "./measured.ts";
import { loaderCalls } from "./void-share.ts";

interface Stalls {
  /** Nanoseconds by step. */
  readonly intra: Readonly<Record<StallCause, number[]>>;
  readonly inter: Readonly<Record<StallCause, number[]>>;
  /** Nanoseconds and calls behind them by name, of all steps. */
  readonly names: Readonly<Record<StallCause, Map<string, { ns: number; count: number }>>>;
}

/**
 * A synchronisation returns when the GPU is done, and the launch after it comes at once: its cost is the launch that
 * could have been made before. The call may end so much before the last kernel does, as the trace has it: clocks of
 * CPU and GPU are aligned to microseconds.
 */
const CLOCK_NS = 20_000;

/** In the order in which they claim a stretch of time: what nests in another comes first. */
export function stallsOf(measured: Measured, interSpans: Intervals): Stalls {
  const { trace, steps, stream, step } = measured;
  const { gpu, calls, hostEvents, names } = trace;
  const empty = (): Record<StallCause, number[]> => byCause(() => steps.startNs.map(() => 0));
  const stalls: Stalls = { intra: empty(), inter: empty(), names: byCause(() => new Map()) };
  const host = activities(trace);
  // Between two kernels of the instrumented set others may have run: it is unknown whether the stream was idle.
  if (trace.coverage === "instrumented") return stalls;

  // Of what ran before the trace nothing is known; a profiler starts by waiting for the GPU to run empty.
  let lastEnd = steps.startNs[0] ?? 0;
  // What broke the CPU's lead: until it has regained it, every launch comes late, and that is the same stall.
  let broke: StallCause = "host";
  for (let i = 0; i < gpu.count; i++) {
    if (gpu.stream[i] !== stream) continue;
    const end = gpu.startNs[i]! + gpu.durNs[i]!;
    const launch = gpu.launch[i]!;
    const at = step[i]!;
    const issuedNs = launch < 0 ? -Infinity : calls.startNs[launch]!;
    if (at >= 0 && issuedNs > lastEnd) {
      const isInter = overlapWith(interSpans, lastEnd, issuedNs) > 0.5 * (issuedNs - lastEnd);
      charge(isInter ? stalls.inter : stalls.intra, at, lastEnd, issuedNs);
    } else broke = "host";
    if (end > lastEnd) lastEnd = end;
  }
  return stalls;

  function charge(to: Stalls["intra"], at: number, from: number, until: number): void {
    let rest = until - from;
    let most = 0;
    for (const cause of ["garbage-collection", "memory-management", "dataloader"] as const) {
      const ns = Math.min(rest, overlapWith(host[cause], from, until));
      if (ns <= 0) continue;
      rest -= ns;
      to[cause][at]! += ns;
      if (ns > most) {
        most = ns;
        broke = cause;
      }
    }
    if (rest <= 0) return;
    const wait = waitedFor(from, until);
    if (wait !== "" && rest > most) broke = "synchronization";
    const cause = wait === "" ? broke : "synchronization";
    to[cause][at]! += rest;
    const name = wait === "" ? innermost(from, until) : wait;
    if (name === "") return;
    const known = stalls.names[cause].get(name) ?? { ns: 0, count: 0 };
    stalls.names[cause].set(name, { ns: known.ns + rest, count: known.count + 1 });
  }

  /** The call in which the CPU waited for the GPU to run empty; "" where it did not. */
  function waitedFor(from: number, until: number): string {
    const { start, end } = host.synchronization;
    for (let k = firstEndingAfter(end, from - CLOCK_NS); k < start.length; k++) {
      if (start[k]! >= until) break;
      if (end[k]! <= until) return names[host.syncNames[k]!] ?? "";
    }
    return "";
  }

  /** The shortest Python function that covers half of the stretch. */
  function innermost(from: number, until: number): string {
    let best = -1;
    for (const row of host.python(from, until)) {
      const start = hostEvents.startNs[row]!;
      const end = start + hostEvents.durNs[row]!;
      const covered = Math.min(end, until) - Math.max(start, from);
      if (2 * covered < until - from) continue;
      if (best < 0 || hostEvents.durNs[row]! < hostEvents.durNs[best]!) best = row;
    }
    return best < 0 ? "" : names[hostEvents.name[best]!]!;
  }
}

function byCause<T>(make: () => T): Record<StallCause, T> {
  return Object.fromEntries(STALL_CAUSES.map((cause) => [cause, make()])) as Record<StallCause, T>;
}

function activities(trace: K.RankKernels) {
  const { calls, hostEvents } = trace;
  const hostOf = (kind: number): Intervals =>
    unionOf(
      hostEvents.startNs,
      hostEvents.durNs,
      hostEvents.count,
      (i) => hostEvents.kind[i] === kind,
    );
  const isMemory = (i: number): boolean => calls.kind[i] === K.ALLOCATE || calls.kind[i] === K.FREE;
  const syncs = synchronizations(trace);
  const functions: number[] = [];
  for (let i = 0; i < hostEvents.count; i++)
    if (hostEvents.kind[i] === K.PYTHON_FUNCTION) functions.push(i);
  // Functions nest, so ends are not in order: those that began before and the longest of all bound the search.
  const longest = functions.reduce((most, row) => Math.max(most, hostEvents.durNs[row]!), 0);
  return {
    "garbage-collection": hostOf(K.GARBAGE_COLLECTION),
    "memory-management": unionOf(calls.startNs, calls.durNs, calls.count, isMemory),
    dataloader: loaderCalls(trace),
    synchronization: syncs.spans,
    syncNames: syncs.names,
    python(from: number, until: number): number[] {
      let low = 0;
      let high = functions.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (hostEvents.startNs[functions[middle]!]! < from - longest) low = middle + 1;
        else high = middle;
      }
      const found: number[] = [];
      for (; low < functions.length && hostEvents.startNs[functions[low]!]! < until; low++)
        if (hostEvents.startNs[functions[low]!]! + hostEvents.durNs[functions[low]!]! > from)
          found.push(functions[low]!);
      return found;
    },
  };
}

/** Calls that wait for the GPU: synchronize, and copies that block because their memory is pageable. */
function synchronizations({ calls }: K.RankKernels) {
  const rows: number[] = [];
  for (let i = 0; i < calls.count; i++) {
    const isLongCopy = calls.kind[i] === K.COPY && calls.durNs[i]! >= K.LONG_CALL_NS;
    if (calls.kind[i] === K.SYNCHRONIZE || isLongCopy) rows.push(i);
  }
  // By end: the last to return is the one that let the CPU go on.
  rows.sort((a, b) => endOf(a) - endOf(b));
  function endOf(row: number): number {
    return calls.startNs[row]! + calls.durNs[row]!;
  }
  return {
    spans: {
      start: Float64Array.from(rows, (row) => calls.startNs[row]!),
      end: Float64Array.from(rows, endOf),
    },
    names: Int32Array.from(rows, (row) => calls.name[row]!),
  };
}
