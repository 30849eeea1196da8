/** What pictures of kernel timelines are drawn from: small, and worked out before anything is drawn. */
import type { Rank } from "./ids.ts";

/**
 * What a GPU does at a moment, one thing at a time: the first that applies. So they add up to the time. Communication
 * is what is exposed: while anything else runs, it costs nothing.
 */
export const GPU_ACTIVITIES = [
  "matrix",
  /** Kernels that neither multiply matrices nor communicate (FLARE's minority kernels). */
  "minority",
  /** Copies and fills. */
  "copy",
  "communication",
  /** Nothing runs, and the CPU has not launched the next kernel. */
  "launch-gap",
  /** Nothing runs, though the next kernel is launched: it waits for another stream, or is on its way. */
  "idle",
] as const;
export type GpuActivity = (typeof GPU_ACTIVITIES)[number];

/** What the CPU is in, as far as it concerns the GPU; the first that applies. */
export const CPU_ACTIVITIES = [
  "garbage-collection",
  "memory-management",
  "dataloader",
  "synchronization",
  "launch",
] as const;
export type CpuActivity = (typeof CPU_ACTIVITIES)[number];

/** How a rank's clock stands to the others'. */
export interface RankClock {
  readonly rank: Rank;
  /** Nanoseconds that it is ahead of the typical clock of its component; taken off to align it. */
  readonly aheadNs: number;
  /** Ranks of different components share no operators: their clocks are as they were. */
  readonly component: Rank;
}

export interface NamedSpan {
  readonly activity: CpuActivity;
  readonly name: string;
  /** Milliseconds from the window's start; may begin before it. */
  readonly startMs: number;
  readonly durMs: number;
}

/** One rank in the window. Columns have an entry a part of it: the share of the part, 0..1. */
export interface RankLane {
  readonly rank: Rank;
  readonly gpu: Readonly<Record<GpuActivity, Float32Array>>;
  /** All of it, also what other kernels hide. */
  readonly communication: Float32Array;
  readonly cpu: Readonly<Record<CpuActivity, Float32Array>>;
  /** The longest calls that hold the CPU up, by time. */
  readonly calls: readonly NamedSpan[];
  /** The rank's own steps that reach into the window, milliseconds from its start. */
  readonly steps: readonly {
    readonly number: number;
    readonly startMs: number;
    readonly endMs: number;
  }[];
  /** False where its clock cannot be compared: it is put so that its step begins with the worst one. */
  readonly isAligned: boolean;
  /** Milliseconds of the window. */
  readonly ms: Readonly<Record<GpuActivity, number>>;
}

export interface TimelinePicture {
  /** Whose step the window is put around, and which. */
  readonly rank: Rank;
  readonly step: number;
  readonly stepMs: number;
  readonly windowMs: number;
  readonly parts: number;
  /** Worst first. */
  readonly lanes: readonly RankLane[];
  readonly leftOut: readonly Rank[];
}
