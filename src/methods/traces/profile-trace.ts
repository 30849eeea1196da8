/** One trace → what its rank's profile is put together from. */
import { getOrInsert } from "../../base/group-by.ts";
import { overlapWith, unionOf } from "../../maths/intervals.ts";
import { ALLOCATE, COMPUTE, FREE, SYNCHRONIZE } from "../../model/kernels.ts";
import {
  STALL_CAUSES,
  type NamedShare,
  type RankProfile,
  type StallCause,
  type KernelRow,
} from "../../model/trace-profile.ts";
import { collectShares } from "./collect-time.ts";
import { flopsRows, OVERLAPS } from "./flops.ts";
import { breakdownOf } from "./gpu-activity.ts";
import { issueLatencies } from "./issue-latency.ts";
import type { Measured } from "./measured.ts";
import { stallsOf } from "./stalls.ts";
import { stepAt } from "./steps.ts";
import { loaderCalls, voidShares } from "./void-share.ts";
import { median } from "../../maths/robust.ts";
import { shapeWords } from "./gemm-shape.ts";
import { COLLECTIVE, MATRIX } from "./instrumented.ts";

const MOST_ROWS = 96;
const KINDS = ["matrix", "communication", "minority"] as const;

const MOST_NAMES = 6;

export type TracePart = ReturnType<typeof profileTrace>;

export function profileTrace(one: Measured) {
  const { trace, steps } = one;
  const { calls } = trace;
  const stepNs = steps.startNs.map((start, i) => steps.endNs[i]! - start);
  const voids = voidShares(one);
  const stalls = stallsOf(one, voids.interSpans);
  const latencies = issueLatencies(one);
  const relative = stepNs.map((): number[] => []);
  latencies.ns.forEach((ns, i) =>
    relative[latencies.step[i]!]!.push(ns / stepNs[latencies.step[i]!]!),
  );
  const counted = (passes: (row: number) => boolean): number[] => {
    const counts = stepNs.map(() => 0);
    for (let i = 0; i < calls.count; i++) {
      const step = passes(i) ? stepAt(steps, calls.startNs[i]!) : -1;
      if (step >= 0) counts[step]!++;
    }
    return counts;
  };
  const loads = stepNs.map(() => 0);
  for (const start of loaderCalls(trace).start) {
    const step = stepAt(steps, start);
    if (step >= 0) loads[step]!++;
  }
  const shares = (of: Readonly<Record<StallCause, number[]>>): RankProfile["intraStalls"] =>
    byCause((cause) => of[cause].map((ns, i) => ns / stepNs[i]!));
  const totalNs = stepNs.reduce((a, b) => a + b, 0);
  return {
    stepMs: stepNs.map((ns) => ns / 1e6),
    flops: flopsRows(one),
    latencyMs: [...latencies.ns].map((ns) => ns / 1e6),
    relative,
    latencyByCollective: new Map(
      [...latencies.byCollective].map(([kind, ns]) => [kind, ns.map((value) => value / 1e6)]),
    ),
    vInter: voids.inter,
    vMinority: voids.minority,
    intraStalls: shares(stalls.intra),
    interStalls: shares(stalls.inter),
    calls: {
      synchronization: counted((i) => calls.kind[i] === SYNCHRONIZE),
      "memory-management": counted((i) => calls.kind[i] === ALLOCATE || calls.kind[i] === FREE),
    },
    loads,
    collectShares: collectShares(one),
    kernels: kernelRows(one),
    stallNames: byCause((cause): NamedShare[] =>
      [...stalls.names[cause]]
        .map(([name, { ns, count }]) => ({
          name,
          share: ns / totalNs,
          perStep: count / stepNs.length,
        }))
        .toSorted((a, b) => b.share - a.share)
        .slice(0, MOST_NAMES),
    ),
    ...communicationMs(one),
    breakdown: breakdownOf(one),
  };
}

/** By step: how long communication runs, and how much of it something else runs beside. */
function communicationMs({ trace, steps, communication }: Measured): {
  commMs: number[];
  overlapMs: number[];
} {
  const { gpu } = trace;
  const computing = unionOf(gpu.startNs, gpu.durNs, gpu.count, (row) => gpu.kind[row] === COMPUTE);
  const commMs = steps.startNs.map(() => 0);
  const overlapMs = steps.startNs.map(() => 0);
  for (let i = 0; i < communication.start.length; i++) {
    const from = communication.start[i]!;
    const to = communication.end[i]!;
    const step = stepAt(steps, from);
    if (step < 0) continue;
    commMs[step]! += (to - from) / 1e6;
    overlapMs[step]! += overlapWith(computing, from, to) / 1e6;
  }
  return { commMs, overlapMs };
}

export function byCause<T>(make: (cause: StallCause) => T): Record<StallCause, T> {
  return Object.fromEntries(STALL_CAUSES.map((cause) => [cause, make(cause)])) as Record<
    StallCause,
    T
  >;
}

/**
 * Durations of kernels by name and shape: which kernel is slower than it was (FLARE §5.2.3), and who fills V_minority.
 */
function kernelRows({ trace, steps, classes, step, communication }: Measured): KernelRow[] {
  const { gpu, matrixOps, shapes, names } = trace;
  const groups = new Map<
    string,
    { name: string; shape: number; kind: number; aloneNs: number[][]; overNs: number[][] }
  >();
  const bySteps = (): number[][] => steps.startNs.map(() => []);
  for (let i = 0; i < gpu.count; i++) {
    if (step[i]! < 0) continue;
    const op = classes[i] === MATRIX ? gpu.matrixOp[i]! : -1;
    const shape = op < 0 ? -1 : matrixOps.shape[op]!;
    const key = `${gpu.name[i]} ${shape}`;
    const group = getOrInsert(groups, key, () => ({
      name: names[gpu.name[i]!]!,
      shape,
      kind: classes[i]!,
      aloneNs: bySteps(),
      overNs: bySteps(),
    }));
    const from = gpu.startNs[i]!;
    const ns = gpu.durNs[i]!;
    const isOver =
      classes[i] !== COLLECTIVE && overlapWith(communication, from, from + ns) > OVERLAPS * ns;
    (isOver ? group.overNs : group.aloneNs)[step[i]!]!.push(ns);
  }
  const totalNs = steps.startNs.reduce((sum, at, i) => sum + steps.endNs[i]! - at, 0);
  return [...groups.values()]
    .map(({ name, shape, kind, aloneNs, overNs }): KernelRow => {
      const isOverlapped = aloneNs.every((list) => list.length === 0);
      const counted = (isOverlapped ? overNs : aloneNs).filter((list) => list.length > 0);
      const medians = counted.map((list) => median(list) / 1e3);
      const all = [...aloneNs, ...overNs].flat();
      return {
        name,
        shape: shape < 0 ? "" : shapeWords(shapes[shape]!),
        kind: KINDS[kind]!,
        medianUs: median(counted.flat()) / 1e3,
        stepUs: [Math.min(...medians), Math.max(...medians)],
        perStep: all.length / steps.startNs.length,
        isOverlapped,
        overlapped: overNs.flat().length / all.length,
        share: all.reduce((a, b) => a + b, 0) / totalNs,
      };
    })
    .toSorted((a, b) => b.share - a.share)
    .slice(0, MOST_ROWS);
}
