/** What may be done about incidents, by whom, and what doing it needs from the service. */
import type { AuditRow } from "../../../history/history.ts";
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { Fetch } from "../alerts/types.ts";

export interface ActionsConfig {
  /** Say what would be run, and run nothing. */
  readonly dryRun: boolean;
  /** "automatic": what can be run is, once the incident is confirmed. */
  readonly approval: "required" | "automatic";
  /** None: nothing can be run. The first that fits an action is its hook. */
  readonly hooks: readonly ActionHook[];
  /** How sure a verdict must be before machines are proposed to be taken out; default 0.8. */
  readonly leastConfidence?: number | undefined;
  /** Machines of one job that may be taken out within 24 hours; default 2. */
  readonly mostMachinesPerDay?: number | undefined;
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

/** What running one action needs. */
export interface RunEnv {
  nowMs(this: void): number;
  readonly fetch: Fetch;
  /** On whose word: a token's name, or "service". */
  readonly who: string;
  /** Safe when it resolves. Nothing is run whose row could not be written. */
  audit(this: void, row: AuditRow): Promise<void>;
  newId(this: void): string;
  /** The service's own environment: commands get what their hook names. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Machines of the job that were taken out since a moment: machinesTaken of its incidents. */
  taken(this: void, job: string, sinceMs: number): Promise<readonly string[]>;
}

export interface RunResult {
  readonly ok: boolean;
  readonly outcome: string;
  /** What the action's state is now; "refused": as before, nothing was run. */
  readonly state: "done" | "failed" | "dry-run" | "refused";
}

/** What the whole life of actions needs. */
export interface ActionsEnv extends Omit<RunEnv, "who"> {
  /**
   * Puts the action, by its id, into the latest record of the incident, and gives that back. Resolves when it is safe
   * from kill -9: an action that says "running" there is never started again by itself.
   */
  put(this: void, incident: string, action: IncidentAction): Promise<Incident>;
  log(this: void, line: string): void;
}
