/** The words of the contract; users and scripts depend on them to the letter. */
export const CAUSES = [
  "cpu-stall",
  "gpu-slow",
  "gpu-hang",
  "gpu-error",
  "gpu-memory",
  "host-memory",
  "process-gone",
  "process-stopped",
  "network-slow",
  "network-hang",
  "collective-mismatch",
  "dataloader",
  "garbage-collection",
  "synchronization",
  "minority-kernels",
  "slow-kernel",
  "gemm-layout",
  "memory-management",
  "stage-imbalance",
  "data-imbalance",
  "storage",
  "numerical",
  "user-program",
  "user-config",
  "software-version",
  "scheduler",
  "platform",
  "telemetry",
  "unknown",
] as const;

export type Cause = (typeof CAUSES)[number];

export type Owner = "operations" | "infrastructure" | "algorithm" | "user";
