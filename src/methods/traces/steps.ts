/**
 * ① Throughput (FLARE §5.2.1): where steps begin and end. FLARE times the data loader's calls; torch.profiler marks
 * steps itself where the user calls step(), which is surer, because micro-batches load several times in a step.
 */
import { findPeriod } from "../../maths/period.ts";
import { DATA_LOADER, type RankKernels } from "../../model/kernels.ts";
import type { RankProfile } from "../../model/trace-profile.ts";

export interface Steps {
  readonly from: RankProfile["stepsFrom"];
  /** Ascending; a step ends where the next one begins, or earlier where there is a pause between both. */
  readonly startNs: readonly number[];
  readonly endNs: readonly number[];
  readonly number: readonly number[];
}

export function stepsOf(trace: RankKernels): Steps {
  return fromMarks(trace) ?? fromLoader(trace) ?? fromPeriod(trace) ?? whole(trace);
}

/** A profiler that pauses between two steps (schedule with wait) leaves a hole: the mark's own end counts then. */
const HOLE = 1.5;

function fromMarks({ steps, gpu }: RankKernels): Steps | null {
  if (steps.count === 0 || gpu.count === 0) return null;
  const startNs = [...steps.startNs.subarray(0, steps.count)];
  const endNs = startNs.map((start, i) => {
    const own = start + steps.durNs[i]!;
    const next = startNs[i + 1] ?? own;
    return next - start > HOLE * steps.durNs[i]! ? own : next;
  });
  return { from: "profiler", startNs, endNs, number: [...steps.number.subarray(0, steps.count)] };
}

/** Every loader call begins a step. Where micro-batches load each, a step is a micro-batch: shares stay the same. */
function fromLoader({ hostEvents }: RankKernels): Steps | null {
  const startNs: number[] = [];
  let until = -Infinity;
  for (let i = 0; i < hostEvents.count; i++) {
    if (hostEvents.kind[i] !== DATA_LOADER || hostEvents.startNs[i]! < until) continue;
    startNs.push(hostEvents.startNs[i]!);
    until = hostEvents.startNs[i]! + hostEvents.durNs[i]!;
  }
  return startNs.length < 3 ? null : between("dataloader", startNs);
}

/** The sequence of kernels repeats: the period is a step. */
function fromPeriod({ gpu, calls }: RankKernels): Steps | null {
  const rows: number[] = [];
  for (let i = 0; i < gpu.count; i++) if (gpu.launch[i]! >= 0) rows.push(i);
  rows.sort((a, b) => gpu.launch[a]! - gpu.launch[b]! || a - b);
  const found = findPeriod(Int32Array.from(rows, (row) => gpu.name[row]!));
  if (!found) return null;
  const { period, runs } = found.level;
  const startNs: number[] = [];
  for (const { start, end } of runs)
    for (let at = start; at <= end; at += period)
      if (at < rows.length) startNs.push(calls.startNs[gpu.launch[rows[at]!]!]!);
  return startNs.length < 2 ? null : between("period", startNs);
}

function between(from: Steps["from"], startNs: readonly number[]): Steps {
  return {
    from,
    startNs: startNs.slice(0, -1),
    endNs: startNs.slice(1),
    number: startNs.slice(1).map((_, i) => i),
  };
}

function whole({ gpu }: RankKernels): Steps {
  if (gpu.count === 0) return { from: "whole", startNs: [], endNs: [], number: [] };
  let end = 0;
  for (let i = 0; i < gpu.count; i++) end = Math.max(end, gpu.startNs[i]! + gpu.durNs[i]!);
  return { from: "whole", startNs: [gpu.startNs[0]!], endNs: [end], number: [0] };
}

/** The step that a time lies in; -1 outside. */
export function stepAt({ startNs, endNs }: Steps, timeNs: number): number {
  let low = 0;
  let high = startNs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (startNs[middle]! <= timeNs) low = middle + 1;
    else high = middle;
  }
  const step = low - 1;
  return step >= 0 && timeNs < endNs[step]! ? step : -1;
}
