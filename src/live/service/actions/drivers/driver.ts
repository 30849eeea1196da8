/**
 * What carries an action out: a hook, Kubernetes, Slurm, a webhook. A driver plans before anything happens, so that a dry
 * run and the audit trail say exactly what is done; a plan runs, can be undone where the driver knows how, and settles
 * what a killed service left in the middle.
 */
import type { Fetch } from "../../alerts/types.ts";

/** One action of an incident, in the terms of drivers. Every name is a plain word: checked before. */
export interface Task {
  /** The same whenever the action is run: marks what was changed by it. */
  readonly id: string;
  readonly do: string;
  readonly target: string;
  readonly job: string;
  readonly run: string;
  readonly incident: string;
  readonly action: string;
  /** Our own words only, nothing that a log said. */
  readonly reason: string;
  readonly machine: string | null;
  /** The spare machine that takes its place. */
  readonly replacement: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Plan {
  /** After "would": "cordon node node003 (…)". */
  readonly words: string;
  run(this: void, env: DriverEnv): Promise<Outcome>;
  /** Absent where nothing takes it back. */
  readonly undo?: { readonly words: string; run(this: void, env: DriverEnv): Promise<Outcome> };
  /**
   * After the service was killed in the middle: reads whether it was done ("failed": it was not). Finishes only what would
   * otherwise leave the job standing still.
   */
  settle?(this: void, env: DriverEnv): Promise<Outcome>;
}

export interface Refused {
  readonly refused: string;
}

export interface Outcome {
  /** "unknown": it may have been done. */
  readonly how: "done" | "failed" | "unknown";
  readonly says: string;
  /** Whether it changed something that `undo` takes back; true also where only a part was done. */
  readonly canUndo?: boolean;
}

export interface DriverEnv {
  readonly fetch: Fetch;
  readonly environment: Readonly<Record<string, string | undefined>>;
  pause(this: void, ms: number): Promise<void>;
}

export const done = (says: string, canUndo = false): Outcome => ({ how: "done", says, canUndo });
export const failed = (says: string, canUndo = false): Outcome => ({
  how: "failed",
  says,
  canUndo,
});
export const unknown = (says: string, canUndo = false): Outcome => ({
  how: "unknown",
  says,
  canUndo,
});
