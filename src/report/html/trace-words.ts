/** Names and legends that all pictures of kernel timelines share. */
import { CPU_ACTIVITIES, GPU_ACTIVITIES } from "../../model/trace-picture.ts";
import type { CpuActivity, GpuActivity } from "../../model/trace-picture.ts";
import { html, type Markup } from "./escape.ts";
import { legend } from "./parts-of-pages.ts";

export const GPU_WORDS: Readonly<Record<GpuActivity, string>> = {
  matrix: "matrix products (compute)",
  minority: "small kernels",
  copy: "copies",
  communication: "exposed communication",
  "launch-gap": "idle: the CPU is late (launch gap)",
  idle: "idle: waits for another stream",
};

export const CPU_WORDS: Readonly<Record<CpuActivity, string>> = {
  "garbage-collection": "garbage collection",
  "memory-management": "cudaMalloc, cudaFree",
  dataloader: "data loader",
  synchronization: "synchronise",
  launch: "launches",
};

export function gpuLegend(): Markup {
  return activityLegend(GPU_ACTIVITIES.map((key) => [GPU_WORDS[key], key]));
}

export function cpuLegend(): Markup {
  return activityLegend(CPU_ACTIVITIES.map((key) => [CPU_WORDS[key], key]));
}

function activityLegend(keys: readonly (readonly [words: string, key: string])[]): Markup {
  return legend(
    "trace-plot trace-key",
    [18, 12],
    keys.map(([words, key]) => [words, html`<path class="${key}" d="M0 0h18v12h-18z" />`]),
  );
}

/** "573 ms", "3.4 ms", "0.12 ms". */
export function msWords(ms: number): string {
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

export function shareWords(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
