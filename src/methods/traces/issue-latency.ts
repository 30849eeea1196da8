/**
 * ④ Issue-latency distribution (FLARE §5.2.2, §6.4): from the moment the CPU issues a kernel to its start on the GPU.
 * A CPU that runs ahead gives latencies spread over the step; one that is held up (garbage collection, needless
 * synchronisation) issues late, and the kernel starts at once: the distribution collapses towards zero.
 */
import { getOrInsert } from "../../base/group-by.ts";
import { GRAPH_LAUNCH } from "../../model/kernels.ts";
import { COLLECTIVE, MINORITY } from "./instrumented.ts";
import type { Measured } from "./measured.ts";

interface Latencies {
  /** Nanoseconds and the step of each instrumented kernel, in the order of the trace. */
  readonly ns: Float64Array;
  readonly step: Int32Array;
  /** Kind of collective ("allreduce") → its latencies. */
  readonly byCollective: ReadonlyMap<string, readonly number[]>;
}

export function issueLatencies({ trace, classes, step }: Measured): Latencies {
  const { gpu, calls, collectives, names } = trace;
  const ns: number[] = [];
  const steps: number[] = [];
  const byCollective = new Map<string, number[]>();
  for (let i = 0; i < gpu.count; i++) {
    const launch = gpu.launch[i]!;
    // Kernels of a graph share one launch: all but the first would seem to wait for themselves.
    if (classes[i] === MINORITY || step[i]! < 0 || launch < 0) continue;
    if (calls.kind[launch] === GRAPH_LAUNCH) continue;
    // Clocks of CPU and GPU are aligned to some microseconds only.
    const latency = Math.max(0, gpu.startNs[i]! - calls.startNs[launch]!);
    ns.push(latency);
    steps.push(step[i]!);
    if (classes[i] !== COLLECTIVE) continue;
    const row = gpu.collective[i]!;
    const kind = row < 0 ? collectiveOf(names[gpu.name[i]!]!) : names[collectives.operation[row]!]!;
    getOrInsert(byCollective, kind, () => []).push(latency);
  }
  return { ns: Float64Array.from(ns), step: Int32Array.from(steps), byCollective };
}

/** "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(…)" → "AllReduce". */
function collectiveOf(kernel: string): string {
  return /^nccl(?:Dev)?Kernel_([A-Za-z]+)/.exec(kernel)?.[1] ?? "communication";
}
