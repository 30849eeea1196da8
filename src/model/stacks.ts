import type { Frame } from "./operators.ts";

export interface ThreadStack {
  /** "MainThread", a hexadecimal id, "" where unknown. */
  readonly name: string;
  /** The thread that faulthandler marks as current, or that py-spy calls MainThread. */
  readonly isMain: boolean;
  /** py-spy's word for what the thread does ("active", "idle", "active+gil"); "" where unknown. */
  readonly status: string;
  /** Innermost first. */
  readonly frames: readonly Frame[];
  /** Line in the file at which the thread begins. */
  readonly line: number;
}

/** The stacks of one process at one moment. */
export interface StackDump {
  readonly file: string;
  readonly pid: number | null;
  readonly threads: readonly ThreadStack[];
}
