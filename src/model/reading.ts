import type { FabricPort } from "./fabric.ts";
import type { Rank } from "./ids.ts";
import type { RankKernels } from "./kernels.ts";
import type {
  LogFailure,
  LogGroup,
  NcclProcess,
  RankLog,
  TorchrunFailure,
  WatchdogReport,
} from "./log.ts";
import type { MetricSet } from "./metrics.ts";
import type { FlightDump, OperatorLog } from "./operators.ts";
import type { ProbeProcess } from "./probe.ts";
import type { RasReport } from "./ras.ts";
import type { IterationSeries } from "./series.ts";
import type { StackDump } from "./stacks.ts";
import type { ValidationReport } from "./validation.ts";

/** Something wrong in a file: what, where, and a sample. The rows around it are kept. */
export interface Defect {
  readonly file: string;
  readonly what: string;
  /** 1-based line, or undefined for binary files. */
  readonly line?: number;
}

/** What one reader got out of one file. Plain data, so that it can cross to another thread. */
export interface Reading {
  readonly file: string;
  readonly format: string;
  /** The rank that wrote the file, as far as the file or its name says. */
  readonly rank: Rank | null;
  readonly records: number;
  readonly defects: readonly Defect[];
  readonly dumps?: readonly FlightDump[];
  readonly stacks?: readonly StackDump[];
  readonly ras?: RasReport;
  readonly failures?: readonly LogFailure[];
  readonly watchdog?: readonly WatchdogReport[];
  readonly logGroups?: readonly LogGroup[];
  readonly torchrun?: readonly TorchrunFailure[];
  readonly rankLogs?: readonly RankLog[];
  readonly series?: readonly IterationSeries[];
  readonly operators?: readonly OperatorLog[];
  readonly kernels?: readonly RankKernels[];
  readonly metrics?: MetricSet;
  readonly probes?: readonly ProbeProcess[];
  readonly validations?: readonly ValidationReport[];
  readonly ncclProcesses?: readonly NcclProcess[];
  /** Where machines hang in the network. */
  readonly fabric?: readonly FabricPort[];
  /** 0 where the file does not say. */
  readonly worldSize?: number;
}
