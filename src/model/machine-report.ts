/** The answer to "which machine is going bad?". */
import type { JoinedName } from "./machine-names.ts";

/** A metric in which a machine was unlike its peers for some time. */
export interface Deviation {
  /** Of the catalog; "reporting" where samples are missing, "gpus" where a device is. */
  readonly metric: string;
  readonly direction: "low" | "high" | "absent" | "frozen";
  /** The device, where one alone is unlike: "gpu3", "mlx5_0/1". */
  readonly device: string | null;
  readonly fromS: number;
  readonly toS: number;
  /** Mean over that time of the machine's value and of its peers' middle, in the metric's unit. */
  readonly value: number;
  readonly peers: number;
  /** How far it was off, in units of what the peers differ by. */
  readonly sigmas: number;
}

export interface FaultyMachine {
  readonly machine: string;
  /** The metric that says it most clearly. */
  readonly metric: string;
  /** 0..1 */
  readonly score: number;
  readonly sinceS: number;
  /** null: it still deviates at the end of the data. */
  readonly untilS: number | null;
  /** With whom it was compared: "stage 2", "all machines". */
  readonly role: string;
  /** Its place in the order in which machines began to deviate, from 1; equal where the sampling cannot tell. */
  readonly order: number;
  readonly why: string;
  readonly deviations: readonly Deviation[];
}

/** What says something about the monitoring, not about the machine. */
export interface TelemetryFault {
  readonly machine: string;
  readonly metric: string;
  readonly sinceS: number;
  readonly untilS: number | null;
  readonly why: string;
}

/** A deviation that did not last: no action, but a hint when training stuttered (Minder §6.1). */
export interface Jitter {
  readonly machine: string;
  readonly metric: string;
  readonly fromS: number;
  readonly toS: number;
  readonly why: string;
}

/** A machine that deviated after another one, in what a fault of that one spreads (PFC storms): no action. */
export interface Follower {
  readonly machine: string;
  readonly metric: string;
  readonly sinceS: number;
  /** The machine whose fault explains it. */
  readonly after: string;
}

/** A time in which the whole job did something else: nobody is accused by what it does then. */
export interface Phase {
  readonly what: "idle" | "warm-up" | "pause" | "halt";
  readonly fromS: number;
  readonly toS: number;
}

export interface MetricCoverage {
  readonly name: string;
  /** Where it came from; "" where there is none. */
  readonly source: string;
  /** Samples seen of those due, 0..1; 0 where the metric is not there. */
  readonly coverage: number;
  /** 0 where it is not there. */
  readonly intervalS: number;
}

export interface MachineReport {
  readonly method: "peers" | "minder";
  readonly machines: number;
  readonly fromS: number;
  readonly toS: number;
  readonly metrics: readonly MetricCoverage[];
  /** The surest first; `order` tells who was first. */
  readonly faulty: readonly FaultyMachine[];
  readonly followers: readonly Follower[];
  readonly telemetry: readonly TelemetryFault[];
  readonly jitter: readonly Jitter[];
  /** Those that did not fit into `jitter`. */
  readonly jittersLeftOut: number;
  readonly phases: readonly Phase[];
  /** Machines that go by several names, and by what they were joined. */
  readonly joined?: readonly JoinedName[];
  readonly missing: readonly string[];
}
