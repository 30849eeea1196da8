/** What may be done about incidents, by whom, and what doing it needs from the service. */
import type { AuditRow } from "../../../history/history.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { Shares } from "../microbatches/jobs.ts";
import type { DriverEnv } from "./drivers/driver.ts";
import type { KubernetesConfig } from "./drivers/kubernetes.ts";
import type { SlurmConfig } from "./drivers/slurm.ts";
import type { WebhookConfig } from "./drivers/webhook.ts";

export interface ActionsConfig {
  /** false: nothing is run, whatever anybody approves. Default true. */
  readonly enabled?: boolean | undefined;
  /** Say what would be run, and run nothing. */
  readonly dryRun: boolean;
  /** "automatic": what can be run is, once the incident is confirmed. */
  readonly approval: "required" | "automatic";
  /** The first that fits an action does it, before any driver. */
  readonly hooks: readonly ActionHook[];
  readonly drivers?: DriversConfig | undefined;
  /** Of jobs that ask for their micro-batches; "automatic": by measured times alone, without an incident. Default: as `approval`. */
  readonly microBatches?: "approval" | "automatic" | null | undefined;
  /** Machines that may replace others, in order. */
  readonly spares?: readonly string[] | undefined;
  /** How sure a verdict must be before machines are proposed to be taken out; default 0.8. */
  readonly leastConfidence?: number | undefined;
  /** The same for incidents of machines, which metrics alone show; default 0.5. Automatic needs leastConfidence. */
  readonly leastMachineConfidence?: number | undefined;
  /** Machines of one job that may be taken out within 24 hours; default 2. */
  readonly mostMachinesPerDay?: number | undefined;
  /** Machines of a job that must stay; below 1 it is a share of them. Default 0.5. */
  readonly leastMachines?: number | undefined;
  /** Actions run within an hour, of all jobs and of one; default 60 and 12. */
  readonly mostActionsPerHour?: number | undefined;
  readonly mostActionsPerHourOfJob?: number | undefined;
}

/** Whether replicas' shares follow their measured times without anybody's word. */
export function sharesFollowTimes({ dryRun, approval, microBatches }: ActionsConfig): boolean {
  return !dryRun && (microBatches ?? approval) === "automatic";
}

export interface DriversConfig {
  readonly kubernetes?: KubernetesConfig | undefined;
  readonly slurm?: SlurmConfig | undefined;
  readonly webhook?: WebhookConfig | undefined;
}

export interface ActionHook {
  /** "cordon-node", "exclude-node", "micro-batches", or another word of Verdict.actions. */
  readonly do: string;
  /** Only for machines whose whole name fits; * is any text, ? any character. */
  readonly machine?: string | undefined;
  /** A program and its arguments, run without a shell. */
  readonly command?: readonly string[] | undefined;
  /** Or an address that gets the action as JSON. */
  readonly webhook?: string | undefined;
  readonly timeoutSeconds?: number | undefined;
  /** Names of environment variables that the command gets beside PATH and HOME. */
  readonly environment?: readonly string[] | undefined;
}

/** What the life of actions needs. */
export interface ActionsEnv extends DriverEnv {
  nowMs(this: void): number;
  newId(this: void): string;
  log(this: void, line: string): void;
  /** Safe when it resolves. Nothing is run whose row could not be written. */
  audit(this: void, row: AuditRow): Promise<void>;
  /** Rows "run" of the audit trail since a moment. */
  runs(this: void, sinceMs: number): Promise<readonly Pick<AuditRow, "incident">[]>;
  /** Machines of the job that were taken out since a moment: machinesTaken of its incidents. */
  taken(this: void, job: string, sinceMs: number): Promise<readonly string[]>;
  /** Machines that the job runs on; null where that is not known. */
  machines(this: void, job: string): readonly string[] | null;
  /** Spares that actions of any job name: sparesNamed of all incidents. */
  sparesNamed(this: void): Promise<readonly NamedSpare[]>;
  /** What replicas take, where the job asks for it; null where it does not. */
  shares(this: void, job: string): Shares | null;
  /** Milliseconds that the job has lost to the incident so far. */
  lostMs(this: void, incident: Incident): number;
  /** One sentence where actions are switched off; null where they are not. */
  switchedOff(this: void): Promise<string | null>;
  /**
   * Puts the action, by its id, into the latest record of the incident, and gives that back. Resolves when it is safe
   * from kill -9: an action that says "running" there is never started again by itself.
   */
  put(this: void, incident: string, action: IncidentAction): Promise<Incident>;
}

export interface NamedSpare {
  readonly spare: string;
  /** Which action has it: its incident's id and its own. */
  readonly by: string;
}
