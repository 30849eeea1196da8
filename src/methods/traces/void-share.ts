/**
 * ⑤ Void percentages (FLARE §5.2.2, equations 1 and 2).
 *
 *   V_inter = T_inter / T_step             V_minority = T_minority / (T_step − T_inter)
 *
 * T_inter is the time from the end of the last kernel before the data loader to the start of the first one after it;
 * a step with several loader calls (micro-batches) has the sum. The last kernel before is that of the stream that
 * computes: a send that waits on its own stream would hide that nothing is computed. The first kernel after may be
 * any: a rank that waits in a receive has nothing to do with its CPU.
 * T_minority is the time of kernels outside the instrumented set in which no instrumented one runs. FLARE, which does
 * not see these kernels, estimates it by the empty slots before kernels that are launched but have not begun; a
 * Kineto trace has them, so slots in which nothing ran at all do not count here (they are stalls, metric ④). Traces of
 * the instrumented kernels alone (our probe's rings) are measured as FLARE does; and since a step may end there in
 * collectives on streams of their own, behind which the computing stream's last kernels are not recorded, T_inter begins
 * with the end of the last kernel of any stream.
 */
import { overlapWith, unionOf, type Intervals } from "../../maths/intervals.ts";
import { DATA_LOADER, MEMCPY, MEMSET } from "../../model/kernels.ts";
import { MINORITY } from "./instrumented.ts";
import type { Measured } from "./measured.ts";
import { stepAt } from "./steps.ts";

interface Voids {
  /** By step, 0..1. */
  readonly inter: readonly number[];
  readonly minority: readonly number[];
  /** What T_inter is made of: ascending, disjoint. */
  readonly interSpans: Intervals;
}

export function voidShares(measured: Measured): Voids {
  const { trace, steps, classes } = measured;
  const { gpu } = trace;
  const stepNs = steps.startNs.map((start, i) => steps.endNs[i]! - start);
  const gaps = interGaps(measured);
  const interNs = stepNs.map(() => 0);
  for (const { step, from, to } of gaps) interNs[step]! += to - from;
  const inter = interNs.map((ns, i) => Math.min(1, ns / stepNs[i]!));

  const isMinority = (row: number): boolean => classes[row] === MINORITY;
  const minority =
    trace.coverage === "instrumented"
      ? slotsBeforeLaunched(measured)
      : unionOf(gpu.startNs, gpu.durNs, gpu.count, isMinority);
  const others = unionOf(gpu.startNs, gpu.durNs, gpu.count, (row) => !isMinority(row));
  const minorityNs = stepNs.map(() => 0);
  for (let i = 0; i < minority.start.length; i++) {
    const from = minority.start[i]!;
    const to = minority.end[i]!;
    const alone = to - from - overlapWith(others, from, to);
    const step = stepAt(steps, from);
    if (step >= 0) minorityNs[step]! += alone;
  }
  const ordered = gaps.toSorted((a, b) => a.from - b.from);
  return {
    inter,
    minority: minorityNs.map((ns, i) => Math.min(1, ns / Math.max(1, stepNs[i]! - interNs[i]!))),
    interSpans: unionOf(
      Float64Array.from(ordered, ({ from }) => from),
      Float64Array.from(ordered, ({ from, to }) => to - from),
      ordered.length,
      () => true,
    ),
  };
}

/** Where the computing stream runs nothing that is recorded although the next kernel is launched: others run there. */
function slotsBeforeLaunched({ trace, stream }: Measured): Intervals {
  const { gpu, calls } = trace;
  const start: number[] = [];
  const end: number[] = [];
  let lastEnd = Infinity;
  for (let i = 0; i < gpu.count; i++) {
    if (gpu.stream[i] !== stream) continue;
    const launch = gpu.launch[i]!;
    const free = Math.max(lastEnd, launch < 0 ? Infinity : calls.startNs[launch]!);
    if (gpu.startNs[i]! > free) {
      start.push(free);
      end.push(gpu.startNs[i]!);
    }
    const until = gpu.startNs[i]! + gpu.durNs[i]!;
    lastEnd = lastEnd === Infinity ? until : Math.max(lastEnd, until);
  }
  return { start: Float64Array.from(start), end: Float64Array.from(end) };
}

interface Gap {
  readonly step: number;
  readonly from: number;
  readonly to: number;
}

/** Around each loader call; around the beginning of each step where the rank loads nothing. */
function interGaps(measured: Measured): Gap[] {
  const { trace, steps } = measured;
  const { startNs } = steps;
  const calls = loaderCalls(trace);
  const marks =
    calls.start.length > 0
      ? [...calls.start].map((from, i) => ({ from, to: calls.end[i]! }))
      : startNs.map((from) => ({ from, to: from }));
  const launched = launchOrder(measured);
  const gaps: Gap[] = [];
  let next = 0;
  let lastEnd = -Infinity;
  // Several loader calls with no kernel between them are one gap.
  let counted = -Infinity;
  for (const { from, to } of marks) {
    const step = stepAt(steps, from);
    if (step < 0) continue;
    for (; next < launched.count && launched.issuedNs[next]! < from; next++)
      if (launched.endsStep[next]) lastEnd = Math.max(lastEnd, launched.endNs[next]!);
    let after = next;
    while (after < launched.count && launched.issuedNs[after]! < to) after++;
    if (after >= launched.count) continue;
    // Nothing is known of the time before the trace: the first loader call counts from its own start.
    const begin = Math.max(lastEnd === -Infinity ? from : lastEnd, startNs[0]!, counted);
    const end = launched.startNs[after]!;
    if (end <= begin) continue;
    gaps.push({ step, from: begin, to: end });
    counted = end;
  }
  return gaps;
}

export function loaderCalls({ hostEvents }: Measured["trace"]): Intervals {
  const { startNs, durNs, count, kind } = hostEvents;
  return unionOf(startNs, durNs, count, (row) => kind[row] === DATA_LOADER);
}

/** Kernels in the order in which the CPU issued them. */
function launchOrder({ trace, stream }: Measured) {
  const { gpu, calls, coverage } = trace;
  const rows: number[] = [];
  for (let i = 0; i < gpu.count; i++)
    if (gpu.kind[i] !== MEMCPY && gpu.kind[i] !== MEMSET && gpu.launch[i]! >= 0) rows.push(i);
  rows.sort((a, b) => gpu.launch[a]! - gpu.launch[b]! || a - b);
  return {
    count: rows.length,
    endsStep: rows.map((row) => coverage === "instrumented" || gpu.stream[row] === stream),
    issuedNs: Float64Array.from(rows, (row) => calls.startNs[gpu.launch[row]!]!),
    startNs: Float64Array.from(rows, (row) => gpu.startNs[row]!),
    endNs: Float64Array.from(rows, (row) => gpu.startNs[row]! + gpu.durNs[row]!),
  };
}
