/** Names and legends that all pictures of kernel timelines share. */
import { CPU_ACTIVITIES, GPU_ACTIVITIES } from "../../model/trace-picture.ts";
import type { CpuActivity, GpuActivity } from "../../model/trace-picture.ts";
import { html, type Markup } from "./escape.ts";

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
  return legend(GPU_ACTIVITIES, GPU_WORDS);
}

export function cpuLegend(): Markup {
  return legend(CPU_ACTIVITIES, CPU_WORDS);
}

function legend<K extends string>(keys: readonly K[], words: Readonly<Record<K, string>>): Markup {
  return html`<ul class="legend">
    ${keys.map(
      (key) =>
        html`<li>
          <svg class="trace-plot trace-key" width="18" height="12" viewBox="0 0 18 12">
            <path class="${key}" d="M0 0h18v12h-18z" />
          </svg>
          ${words[key]}
        </li> `,
    )}
  </ul>`;
}

/** "573 ms", "3.4 ms", "0.12 ms". */
export function msWords(ms: number): string {
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

export function shareWords(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
