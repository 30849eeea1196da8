/** One scrape of xpu_timer (DLRover, the open part of FLARE): what each rank of a machine measured of late. */
import type { Rank } from "./ids.ts";

/** One bucket of kernels of one rank. Numbers are NaN where the scrape lacks them. */
export interface XpuTimerKernels {
  readonly rank: Rank;
  readonly kind: "matmul" | "collective";
  /** "Matmul", "AllReduce". */
  readonly operation: string;
  /** "bf16"; "" where the scrape does not say. */
  readonly dtype: string;
  /** xpu_timer sorts kernels into buckets of equal work, 0 the smallest; -1 where the scrape does not say. */
  readonly level: number;
  readonly avgUs: number;
  readonly maxUs: number;
  readonly p99Us: number;
  readonly minUs: number;
  /** Matrix kernels: floating-point operations a second, in the unit that xpu_timer was built with. */
  readonly flops: number;
  /** Collectives: gigabits or gigabytes a second, in the unit that xpu_timer was built with. */
  readonly bandwidth: number;
  /** Collectives: "RING_LL", "InterNode"; "" for others. */
  readonly algorithm: string;
  readonly transport: string;
  readonly isSmall: boolean;
}

/** NaN where the scrape lacks a number. */
export interface XpuTimerRank {
  readonly rank: Rank;
  /** -1 where the scrape does not say. */
  readonly localRank: number;
  readonly ip: string;
  readonly pod: string;
  /** Whether a kernel has not ended for longer than XPU_TIMER_HANG_TIMEOUT; null where the scrape does not say. */
  readonly isHung: boolean | null;
  /** Kernels that wait for their end to be seen. */
  readonly workQueue: number;
  readonly poolQueue: number;
  readonly gcCount: number;
  readonly dataLoaderCount: number;
  /** XPU_TIMER_MEMORY_COUNTER. */
  readonly memory: number;
}

export interface XpuTimerScrape {
  readonly file: string;
  readonly jobName: string;
  /** In the order of ranks. */
  readonly ranks: readonly XpuTimerRank[];
  readonly kernels: readonly XpuTimerKernels[];
}
