import type { Place, Rank } from "./ids.ts";
import type { RankKernels } from "./kernels.ts";
import type { LogDigest } from "./log-digest.ts";
import type { LogReport } from "./log-report.ts";
import type { LogFailure, RankLog, TorchrunFailure, WatchdogReport } from "./log.ts";
import type { MetricSet } from "./metrics.ts";
import type { FlightDump, OperatorLog } from "./operators.ts";
import type { ProbeProcess } from "./probe.ts";
import type { RankOperatorSource } from "./rank-operators.ts";
import type { RasReport } from "./ras.ts";
import type { IterationSeries, TrackedSeries } from "./series.ts";
import type { StackDump } from "./stacks.ts";
import type { RunProfile } from "./trace-profile.ts";
import type { ValidationReport } from "./validation.ts";
import type { VerdictInput } from "./verdict.ts";

/**
 * A process group, identified by name and members: the same name can denote different rank sets
 * (split_group), and the same ranks can form several groups.
 */
export interface Group {
  /** Index in `Job.groups`. */
  readonly id: number;
  readonly name: string;
  readonly desc: string;
  /** Global ranks in group order. */
  readonly ranks: readonly Rank[];
  /**
   * The description without its numbers, for people and for comparing groups of the same role:
   * "TENSOR_PARALLEL".
   */
  readonly role: string;
  /**
   * Whether point-to-point operators run in it (or in groups of the same role). Its counters then mix
   * both kinds and legitimately differ between pipeline stages.
   */
  readonly carriesP2p: boolean;
  /** Members of whom nothing is known, not even their rank: they are not in `ranks`. */
  readonly unknownMembers?: number;
}

export interface RankInfo {
  readonly rank: Rank;
  readonly machine: string | null;
  readonly gpu: number | null;
  readonly pid: number | null;
  /** Its NIC, and the leaf switch that the NIC hangs on, where the job file or the network's own sources say. */
  readonly nic: string | null;
  readonly leaf: string | null;
  /** Its pipeline stage, where the job file or the groups say. */
  readonly stage?: number | null;
}

/** A dump whose groups have been mapped to the job's. */
export interface RankDump {
  readonly rank: Rank;
  readonly dump: FlightDump;
  /** Dump group index → job group id; -1 where the members are unknown. */
  readonly groupIds: Int32Array;
}

/** Everything that the inputs hold about one job. */
export interface Job {
  readonly name: string;
  /** Ranks that the job should have, from the inputs or the job file; 0 where nothing says. */
  readonly worldSize: number;
  readonly ranks: ReadonlyMap<Rank, RankInfo>;
  readonly groups: readonly Group[];
  /** Micro-batches of a replica in an iteration, where the job file says. */
  readonly microBatches?: number | null;
  readonly dumps: ReadonlyMap<Rank, RankDump>;
  readonly stacks: ReadonlyMap<Rank, StackDump>;
  /** Stacks of processes whose rank nothing tells. */
  readonly strayStacks: readonly StackDump[];
  readonly ras: readonly RasReport[];
  readonly failures: readonly LogFailure[];
  readonly watchdog: readonly WatchdogReport[];
  readonly torchrun: readonly TorchrunFailure[];
  readonly logs: ReadonlyMap<Rank, RankLog>;
  /** Of writers whose rank nothing tells: a console without prefixes. */
  readonly strayLogs: readonly RankLog[];
  /** Iteration times as logs and tables tell them. */
  readonly series: readonly IterationSeries[];
  /** Operators out of other sources than the flight recorder. */
  readonly operators: readonly OperatorLog[];
  /** Profiler traces, a rank each; a rank may have several, of different steps. */
  readonly kernels?: readonly RankKernels[];
  /** Healthy runs of the same job that its traces are compared with. */
  readonly traceBaseline?: readonly RunProfile[];
  /** What was monitored of its machines, a set for each file. */
  readonly metrics?: readonly MetricSet[];
  /** What probes inside its processes left, a ring each; a rank may have two, native and python. */
  readonly probes?: readonly ProbeProcess[];
  /** What ranks measured when asked to test their GPUs and links. */
  readonly validations?: readonly ValidationReport[];
  /** Of a job that runs: ranks whose agents tell of them. */
  readonly watched?: ReadonlySet<Rank>;
  /** Machine → incidents that were confirmed of it in the last 90 days, where somebody keeps count. */
  readonly incidents?: ReadonlyMap<string, number>;
  /** Machine → other names that monitoring has for it, as the job's file tells. */
  readonly machineNames?: ReadonlyMap<string, readonly string[]>;
  /** All that its logs say, line by line where it may tell of a failure. */
  readonly logDigest?: LogDigest;
  /** What that comes to: the one judgement of what broke, by whatever lines say. */
  readonly logReport?: LogReport;
  /** Iterations as the tracker sees them, from `series` and from operators; empty before it has run. */
  readonly iterations: readonly TrackedSeries[];
  /** Operators by rank, cut into iterations; of no rank before the tracker has run. */
  readonly rankOperators: RankOperatorSource;
  /** (host, pid) as "host:pid" → rank, where NCCL's logs tell. */
  readonly processes: ReadonlyMap<string, Rank>;
  readonly inputs: readonly VerdictInput[];
  /** What was broken, missing or odd in the inputs, a sentence each. */
  readonly missing: readonly string[];
  /** Whether some dumps are of another run, or end long before the others: an earlier run's, or a clock is off. */
  readonly mixesRuns: boolean;
  /** Where each rank's dump lies, for evidence. */
  readonly places: ReadonlyMap<Rank, Place>;
}

/** Handed to everything that needs more than its arguments; so that a run can be repeated exactly. */
export interface Env {
  readonly signal: AbortSignal;
  /** One line of progress; `done` and `total` in the same unit. */
  progress(what: string, done: number, total: number): void;
}
