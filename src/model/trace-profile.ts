/**
 * What a run's kernel timelines come down to: FLARE's five metrics (§5.2) by rank, small enough to be kept as a
 * healthy run that later ones are compared with. Everything here is plain JSON.
 */
import type { Rank } from "./ids.ts";
import type { GpuActivity } from "./trace-picture.ts";

/** What the CPU did while the GPU waited for its next kernel. */
export const STALL_CAUSES = [
  "dataloader",
  "garbage-collection",
  "synchronization",
  "memory-management",
  /** Anything else: Python, operators, launching itself. */
  "host",
] as const;
export type StallCause = (typeof STALL_CAUSES)[number];

/** Shares of a step, 0..1, in which the GPU's main stream was idle because the CPU had not launched the next kernel. */
export type StallShares = Readonly<Record<StallCause, readonly number[]>>;

/** A matrix operator of one shape (metric ②). */
export interface FlopsRow {
  /** "aten::mm". */
  readonly kernel: string;
  /** "[4096×8192] · [8192×8484] BFloat16". */
  readonly shape: string;
  /** Batch, rows, inner dimension, columns. */
  readonly bmkn: readonly [number, number, number, number];
  /** Bytes of one element; 0 where unknown. */
  readonly elementBytes: number;
  /** Median of those that nothing overlaps; of all where communication overlaps every one (FLARE §5.2.2). */
  readonly tflops: number;
  readonly count: number;
  /** How many ran while a communication kernel ran, too. */
  readonly overlapped: number;
  /** Share of the rank's steps that they take, 0..1. */
  readonly share: number;
}

/** Collectives of one kind, size and group (metric ③). */
export interface BandwidthRow {
  readonly collective: string;
  /** "TENSOR_PARALLEL_0", or its name where it has no description. */
  readonly group: string;
  readonly groupRanks: readonly Rank[];
  readonly bytes: number;
  /** Median, from the member that came last: it does not wait. */
  readonly busGBps: number;
  readonly count: number;
  /** Whether every member left a trace. Else the last to come may be missing, and waiting counts as transfer. */
  readonly isWhole: boolean;
  /** Medians of the slowest and of the fastest step. */
  readonly stepGBps: readonly [slowest: number, fastest: number];
  /** Mean of one transfer, and what all of them take of a step, milliseconds. */
  readonly meanMs: number;
  readonly msPerStep: number;
}

/** Kernels of one name and shape. */
export interface KernelRow {
  readonly name: string;
  /** "" where the trace has no shapes. */
  readonly shape: string;
  readonly kind: "matrix" | "communication" | "minority";
  /** Median of those that no communication kernel overlaps; of all where every one is overlapped. */
  readonly medianUs: number;
  /** Medians of the fastest and of the slowest step: inputs of unequal length lie far apart. */
  readonly stepUs: readonly [fastest: number, slowest: number];
  readonly perStep: number;
  readonly isOverlapped: boolean;
  /** Share of them that communication overlaps, 0..1. */
  readonly overlapped: number;
  /** Share of the rank's steps, 0..1. */
  readonly share: number;
}

/** Time in one function or call, for the words of a finding. */
export interface NamedShare {
  readonly name: string;
  /** Of the step, 0..1. */
  readonly share: number;
  readonly perStep: number;
}

export interface RankProfile {
  readonly rank: Rank;
  /** Whether its trace ends in the middle: kernels are written last, so that what is lost looks like idle time. */
  readonly isCut?: boolean;
  readonly files: readonly string[];
  /** How steps were distinguished. */
  readonly stepsFrom: "profiler" | "dataloader" | "period" | "whole";
  /** ① Throughput: times of steps. Every list by step has as many entries. */
  readonly stepMs: readonly number[];
  readonly flops: readonly FlopsRow[];
  readonly bandwidth: readonly BandwidthRow[];
  /** ④ Milliseconds from launch to start, ascending, at most LATENCY_POINTS of them. */
  readonly latencyMs: readonly number[];
  /** The same as shares of the step, of each half of the steps: the run's own variation. */
  readonly latencyHalves: readonly [readonly number[], readonly number[]];
  /** By kind of collective ("allreduce"), milliseconds. */
  readonly latencyByCollective: Readonly<Record<string, readonly number[]>>;
  /** ⑤ Equations 1 and 2, by step. */
  readonly vInter: readonly number[];
  readonly vMinority: readonly number[];
  /** Stalls inside steps, and those around the loader or between steps (inside T_inter). */
  readonly intraStalls: StallShares;
  readonly interStalls: StallShares;
  /** Calls of each kind in a step. */
  readonly calls: Readonly<Record<"synchronization" | "memory-management", readonly number[]>>;
  /** Loader calls in a step. */
  readonly loads: readonly number[];
  readonly kernels: readonly KernelRow[];
  /** Calls and functions in the stalls, the longest first. */
  readonly stallNames: Readonly<Record<StallCause, readonly NamedShare[]>>;
  /** A step's communication, and how much of it computation hides; medians, milliseconds. */
  readonly commMs: number;
  readonly overlapMs: number;
  /** What the GPU did, shares by step; absent in profiles that were stored before it was measured. */
  readonly breakdown?: Readonly<Record<GpuActivity, readonly number[]>>;
}

export interface RunProfile {
  /** What it lacks as a baseline, a sentence each. */
  readonly lacks?: readonly string[];
  /** Where it was read from. */
  readonly source: string;
  readonly backend: string;
  /** What the run computes, by its matrix operators and collectives: shares of calls. */
  readonly mix: Readonly<Record<string, number>>;
  readonly worldSize: number;
  /** "NVIDIA H200"; "" where the traces do not say. */
  readonly hardware: string;
  readonly ranks: readonly RankProfile[];
}
