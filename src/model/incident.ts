/** What goes wrong in a running job, from the first suspicion to its end: the record that people, alerts and actions share. */
import type { Rank } from "./ids.ts";
import type { Verdict } from "./verdict.ts";

/**
 * suspected: something is wrong, and the service searches for the root cause. confirmed: it lasts, and there is a verdict.
 * resolved: it is over. relapsed: it was over and came back; confirmed again.
 */
export type IncidentState = "suspected" | "confirmed" | "resolved" | "relapsed";

/** The job of an incident that is about a machine of no one job. No job is called that. */
export const NO_ONE_JOB = "machines-of-the-site";

export interface Incident {
  /** Made of job, run and what the incident began with: the same on whichever service sees it. */
  readonly id: string;
  readonly job: string;
  readonly run: string;
  /** Counts changes, from 1: a record with a higher one replaces the others. */
  readonly revision: number;
  readonly state: IncidentState;
  readonly kind: "hang" | "crash" | "fail-slow" | "regression" | "faulty-machine" | "undetermined";
  /** One sentence. */
  readonly summary: string;
  /** Milliseconds since 1970: when it began as far as is known, when the service knew, and when it ended. */
  readonly onsetMs: number;
  readonly openedMs: number;
  readonly changedMs: number;
  readonly resolvedMs: number | null;
  readonly fromIteration: number | null;
  readonly relapses: number;
  readonly verdict: Verdict | null;
  /** Of the suspects. */
  readonly machines: readonly string[];
  readonly ranks: readonly Rank[];
  /** GPU-milliseconds lost so far. */
  readonly wastedGpuMs: number;
  readonly actions: readonly IncidentAction[];
}

export type ActionState =
  | "proposed"
  | "approved"
  | "running"
  | "done"
  | "failed"
  | "dismissed"
  | "dry-run";

export interface IncidentAction {
  /** Within the incident. */
  readonly id: string;
  /** "cordon-node", "exclude-node", "micro-batches", or another word of Verdict.actions. */
  readonly do: string;
  readonly target: string;
  readonly why: string;
  readonly state: ActionState;
  /** Whether a hook is configured that can do it. */
  readonly canRun: boolean;
  readonly changedMs: number;
  /** What the hook said at the end; "" before. */
  readonly outcome: string;
  /** For hooks: whatever the action needs, such as counts of micro-batches. */
  readonly data: Readonly<Record<string, unknown>>;
}
