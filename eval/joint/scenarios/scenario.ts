/** One simulated job with one truth, and all that is to be written of it. Plain data: a seed makes it, an Output takes it. */
import type { Cause } from "../../../src/model/cause.ts";
import type { SuspectType, VerdictKind } from "../../../src/model/finding.ts";
import type { ClusterSpec } from "../../../src/simulate/cluster/spec.ts";
import type { TelemetryFaultKind } from "../../machines/fleet/telemetry.ts";

/** What somebody may have of a job. */
export const EVIDENCE_KINDS = ["operators", "metrics", "logs", "stacks"] as const;
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number];

export const FAMILIES = [
  "healthy",
  "gpu-slow",
  "nic-slow",
  "link-slow",
  "switch-slow",
  "cpu-contention",
  "dataloader-slow",
  "gpu-error",
  "gpu-memory",
  "host-memory",
  "exception",
  "nan",
  "process-gone",
  "process-stopped",
  "machine-lost",
  "gpu-hang",
  "cpu-stall",
  "dataloader-hang",
  "storage-hang",
  "network-hang",
  "mismatch",
] as const;
export type Family = (typeof FAMILIES)[number];

export const MISLEADING = [
  "none",
  "loud-victim",
  "telemetry-fault",
  "error-storm",
  "two-faults",
  "missing-evidence",
] as const;
export type Misleading = (typeof MISLEADING)[number];

/** What is really wrong. */
export interface Truth {
  readonly kind: VerdictKind;
  readonly type: SuspectType;
  /** Every rank on the component; for a link its two ends. */
  readonly ranks: readonly number[];
  readonly machine: string | null;
  readonly link: readonly [string, string] | null;
  /** Of a switch. */
  readonly name: string | null;
  readonly cause: Cause;
  readonly fromIteration: number;
}

/** A healthy machine whose symptoms are louder than the culprit's. */
export interface LoudVictim {
  readonly machine: number;
  /** Factors on its CPU usage, and on the PFC pauses and congestion marks of its NICs. */
  readonly cpu: number;
  readonly pfc: number;
  readonly congestion: number;
  /** Whether the culprit's own metrics show nothing at all. */
  readonly isCulpritMute: boolean;
}

export type TelemetryKind = TelemetryFaultKind | "other-machine";

export interface BrokenExporter {
  readonly kind: TelemetryKind;
  readonly machine: number;
  readonly gpu: number | null;
  /** Whose values it serves, where it serves another machine's. */
  readonly from: number;
  readonly fromS: number;
  readonly untilS: number;
}

export const STORMS = [
  "connection-retry",
  "name-lookup",
  "upload-retry",
  "tracker-retry",
  "skipped-sample",
  "corrected-memory",
  "corrected-pcie",
] as const;
export type StormKind = (typeof STORMS)[number];

export interface Storm {
  readonly kind: StormKind;
  /** Whose logs are full of it. */
  readonly ranks: readonly number[];
  /** Lines an iteration and rank. */
  readonly rate: number;
  readonly from: number;
  readonly to: number;
}

/** Evidence of one kind that the culprit did not leave. */
export interface LostEvidence {
  readonly kind: EvidenceKind;
  readonly ranks: readonly number[];
}

export type StackForm = "py-spy" | "py-spy-json" | "faulthandler";

export interface Stacks {
  readonly form: StackForm;
  /** Where ranks of this job wait for their GPUs. */
  readonly wait: "stream" | "item" | "barrier";
}

export interface Scenario {
  readonly seed: number;
  readonly family: Family;
  readonly misleading: Misleading;
  /** With the faults that the engine plays. */
  readonly spec: ClusterSpec;
  /** The first is the one that explains what the job does; empty where it is healthy. */
  readonly truths: readonly Truth[];
  /** By how much of itself an iteration gets longer, without noise; 0 where nothing is slow. */
  readonly growth: number;
  readonly victim: LoudVictim | null;
  readonly exporter: BrokenExporter | null;
  readonly storm: Storm | null;
  readonly lost: LostEvidence | null;
  readonly stacks: Stacks | null;
  /** Whether the job ran to its end and said so; else the files are of a moment in between, where it did not stop. */
  readonly isFinished: boolean;
  /** Entries of a flight recorder, and whether it times operators. */
  readonly ringSize: number;
  readonly timing: boolean;
  /** Seconds between samples, GPUs of a machine that are written, and seconds after the job stopped. */
  readonly intervalS: number;
  readonly metricGpus: number;
  readonly tailS: number;
}
