/**
 * The metrics, by the names of their exporters, for each of Minder's 21 (Table 2). Levels are those of an H100 node:
 * 1,980 MHz, 700 W, 80 GB, PCIe 5 x16, eight 400 Gbit/s RoCE NICs, 2 TiB of memory. A family says what is measured
 * without noise, and how much machines, devices and samples scatter around it (assumed, unless said otherwise).
 */
import type { MachineEffect } from "./effects.ts";
import type { GpuLevel } from "./levels.ts";
import type { Scale, Spread } from "./spread.ts";

/** gauge: a level; counter: sums up; unknown: the same, as node_exporter's ethtool collector types it. */
export type MetricType = "gauge" | "counter" | "unknown";

export interface Family extends Scale {
  /** As a sample has it: a counter's ends in _total. */
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly decimals: number;
  /** For its noise. */
  readonly id: number;
  readonly spread: Spread;
}

/** What a change of a GPU, its process or its NIC may touch: families tell which of them they see. */
export type GpuSight = "activity" | "memory" | "state" | "traffic" | "pfc" | "congestion";

/** One series a GPU (dcgm) or a NIC; a rate where it is a counter. */
export interface GpuFamily extends Family {
  readonly source: "dcgm" | "infiniband" | "ethtool";
  readonly sees: GpuSight;
  /** Follows its cause with this time constant: silicon warms up in seconds, not at once. */
  readonly lagS: number;
  level(level: GpuLevel): number;
}

/** One series a machine and label set; a rate where it is a counter. */
export interface NodeFamily extends Family {
  readonly labels: readonly string[];
  /** Which field of the machine's state moves it; "" for constants. */
  readonly sees: keyof MachineEffect | "";
  /** What noise applies to, such as the CPU's usage. */
  level(effect: Readonly<MachineEffect>): number;
  /** Adds what has no noise, such as time spent waiting for disks. */
  extra(effect: Readonly<MachineEffect>, second: number): number;
  /** What the exporter makes of both. */
  show(level: number, extra: number, label: number): number;
}
