/** What is to be measured, whichever simulator made it: levels without noise, series by series. */
import type { Family, GpuFamily, NodeFamily } from "./families.ts";
import type { NoiseLevels } from "./spread.ts";

export type Exporter = "dcgm" | "node";

export interface NodeRow {
  /** What noise applies to, by tick; NaN where the machine does not answer. */
  readonly level: Float64Array;
  /** What has no noise. */
  readonly extra: Float64Array;
}

export interface Scene {
  readonly seed: number;
  readonly noise: NoiseLevels;
  readonly machines: number;
  readonly gpusPerMachine: number;
  readonly ticks: number;
  readonly stepS: number;
  /** Levels by tick, NaN where there is no sample. Rows may be reused by the next call. */
  gpuRow(family: GpuFamily, machine: number, gpu: number): Float64Array;
  nodeRow(family: NodeFamily, machine: number): NodeRow;
  /** By tick: 1 where the scrape was lost; null where none was. */
  lost(exporter: Exporter, machine: number): Uint8Array | null;
  /** What a broken exporter makes of a series, in place. */
  distort(family: Family, machine: number, gpu: number, values: Float64Array): void;
}

export function exporterOf({ source }: GpuFamily): Exporter {
  return source === "dcgm" ? "dcgm" : "node";
}

/** A first-order lag of a row, in place. */
export function delay(row: Float64Array, lagS: number, stepS: number): void {
  if (lagS === 0) return;
  const stay = Math.exp(-stepS / lagS);
  for (let t = 1; t < row.length; t++) {
    const before = row[t - 1]!;
    if (!Number.isNaN(before)) row[t] = row[t]! + stay * (before - row[t]!);
  }
}
