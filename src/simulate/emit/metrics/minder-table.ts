/**
 * Which metrics show a fault: Minder's Table 1 (share of the instances of a fault type that a metric
 * indicated). A fault shows in a group of metrics or does not, decided once for the fault by a hash.
 */
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { STREAM, uniform } from "../../cluster/noise.ts";

export const METRIC_GROUPS = ["cpu", "gpu", "pfc", "throughput", "disk", "memory"] as const;
export type MetricGroup = (typeof METRIC_GROUPS)[number];

type Row = Readonly<Record<MetricGroup, number>>;

function row(
  cpu: number,
  gpu: number,
  pfc: number,
  throughput: number,
  disk: number,
  memory: number,
): Row {
  return { cpu, gpu, pfc, throughput, disk, memory };
}

export const FAULT_TYPES: Readonly<Record<string, Row>> = {
  ecc: row(0.8, 0.657, 0.086, 0.457, 0.114, 0.571),
  pcie: row(0, 0.083, 1, 0.333, 0.083, 0),
  "nic-drop": row(1, 1, 0, 1, 0, 1),
  "card-drop": row(0.75, 0.7, 0.05, 0.5, 0.2, 0.55),
  nvlink: row(0.833, 0.5, 0.167, 0.5, 0, 0.667),
  aoc: row(0.25, 0.25, 0, 0.25, 0.25, 0.25),
  "cuda-execution": row(0.619, 0.571, 0.19, 0.333, 0.143, 0.619),
  "gpu-execution": row(0.5, 0.714, 0.143, 0.429, 0.214, 0.428),
  hdfs: row(0.571, 0.571, 0, 0.143, 0, 0.143),
  unreachable: row(0.474, 0.632, 0, 0.536, 0.263, 0.158),
  // The table has no figures for it ("illegal memory access, failed scheduling, no disk storage, …"): assumed.
  other: row(0.5, 0.5, 0.05, 0.3, 0.2, 0.4),
};

/** Minder's name for a fault of ours; null where the simulation itself says what the metrics do. */
function faultType({ signature, cause }: FaultSpec): string | null {
  if (signature !== "") return signature;
  if (cause === "gpu-error") return "cuda-execution";
  // Appendix A: "page-fault, out-of-memory, and other incorrect processing leading to GPU hang".
  if (cause === "gpu-hang" || cause === "gpu-memory") return "gpu-execution";
  return null;
}

/** The groups of metrics in which the n-th fault of a job shows. */
export function shownGroups(fault: FaultSpec, n: number, seed: number): ReadonlySet<MetricGroup> {
  const type = faultType(fault);
  const shares = type === null ? undefined : FAULT_TYPES[type];
  if (!shares) return new Set();
  return new Set(
    METRIC_GROUPS.filter(
      (group, g) => uniform(seed ^ STREAM.metrics, n, g, 0x7ab1) < shares[group],
    ),
  );
}
