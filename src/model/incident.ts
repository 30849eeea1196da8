/** What goes wrong in a running job, from the first suspicion to its end: the record that people, alerts and actions share. */
import type { Rank } from "./ids.ts";
import type { Verdict } from "./verdict.ts";

/**
 * suspected: something is wrong, and the service searches for the root cause. confirmed: it lasts, and there is a verdict.
 * resolved: it is over. relapsed: it was over and came back; confirmed again.
 */
export type IncidentState = "suspected" | "confirmed" | "resolved" | "relapsed";

/**
 * fixed: the culprit's own time is as before. passed: the job is at its usual pace, and nobody can say by what. restarted:
 * another run began. ended: the job ended. withdrawn: later evidence accuses another for the same iterations.
 */
export type IncidentEnding = "fixed" | "passed" | "restarted" | "ended" | "withdrawn";

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
  /** When somebody was first named, since it began or came back; absent before, and in records of older services. */
  readonly namedMs?: number;
  /** How it ended; absent while it is open, and in incidents of machines, regressions and older services. */
  readonly ending?: IncidentEnding;
  /** The same in words, with the job's pace since: "fixed; iterations take 510 ms again". */
  readonly endingSays?: string;
  readonly fromIteration: number | null;
  /** Where iterations are slow now and then: how many of how many, and by how many times. Absent where all are. */
  readonly intermittent?: { readonly slow: number; readonly of: number; readonly ratio: number };
  readonly relapses: number;
  /** The tests of GPUs and links that the service asked the ranks for; absent where it asked for none. */
  readonly validation?: IncidentValidation;
  readonly verdict: Verdict | null;
  /** Of the suspects. */
  readonly machines: readonly string[];
  readonly ranks: readonly Rank[];
  /** GPU-milliseconds lost so far. */
  readonly wastedGpuMs: number;
  readonly actions: readonly IncidentAction[];
}

export interface IncidentValidation {
  /** Who was asked to take part, and after which iteration. */
  readonly ranks: readonly Rank[];
  readonly atIteration: number;
  /** One sentence: what came out, or why nothing did. */
  readonly outcome: string;
  /** A GPU or link was found slow. */
  readonly isNamed: boolean;
  /** How long the job waited for the tests, and GPU-milliseconds of all its ranks; null where no report says so. */
  readonly tookMs: number | null;
  readonly costGpuMs: number | null;
}

export type ActionState =
  | "proposed"
  | "approved"
  | "running"
  | "done"
  | "failed"
  | "dismissed"
  | "dry-run"
  | "undoing"
  | "undone";

export interface IncidentAction {
  /** Within the incident. */
  readonly id: string;
  /** "cordon-node", "exclude-node", "micro-batches", or another word of Verdict.actions. */
  readonly do: string;
  readonly target: string;
  readonly why: string;
  readonly state: ActionState;
  /** Whether a hook or a driver is configured that can do it. */
  readonly canRun: boolean;
  /** Whether something of it was done that can be undone; absent where nothing is. */
  readonly canUndo?: boolean;
  readonly changedMs: number;
  /** What the hook said at the end; "" before. */
  readonly outcome: string;
  /** What the last dry run said that would be done; absent where there was none since the action last changed. */
  readonly would?: string;
  /** For hooks: whatever the action needs, such as counts of micro-batches. */
  readonly data: Readonly<Record<string, unknown>>;
}
