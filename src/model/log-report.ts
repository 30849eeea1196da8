/** The answer about a job's logs: what failed, where, when, and which lines say so. */
import type { Cause } from "./cause.ts";
import type { CausalRole, Category, FaultOwner } from "./fault-record.ts";
import type { Place } from "./ids.ts";

export const STAGES = ["launch", "load", "train", "checkpoint", "exit"] as const;
export type Stage = (typeof STAGES)[number];

/** Which comparison points at a line: a known signature, healthy jobs, other nodes, earlier iterations. */
export type Reason = "library" | "cross-job" | "spatial" | "temporal";

export interface LogCause {
  readonly category: Category;
  /** What a verdict calls it. */
  readonly cause: Cause;
  /** Id of the library's record; "silence", "exception" and the like where none says it. */
  readonly signature: string;
  readonly title: string;
  readonly role: CausalRole;
  readonly owner: FaultOwner;
  readonly meaning: string;
  readonly action: string;
  readonly falseFriends: readonly string[];
  /** 0 to 1. */
  readonly confidence: number;
  /** The line that says so; null for what no line says. */
  readonly at: { readonly file: string; readonly line: number; readonly text: string } | null;
  /** All lines that say so, as far as they were kept. */
  readonly places: readonly Place[];
  /** Nodes and ranks that wrote it. */
  readonly nodes: readonly string[];
  readonly ranks: readonly number[];
  /** What the line names: gpu, pci, host, peer, rank, seq, … */
  readonly captures: Readonly<Record<string, string>>;
}

export interface IndicatingLine {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Lines that it stands for: itself and later ones of the same template and writer that are not listed. */
  readonly count: number;
  readonly text: string;
  readonly template: string;
  /** 0 to 1. */
  readonly score: number;
  readonly why: readonly Reason[];
  readonly signature: string | null;
  readonly role: CausalRole | null;
  readonly node: string | null;
  readonly rank: number | null;
  readonly timeMs: number | null;
}

export interface SuspectNode {
  readonly node: string;
  readonly score: number;
  /** What is different about it, a sentence each. */
  readonly why: readonly string[];
}

export interface SuspectIteration {
  readonly iteration: number;
  readonly score: number;
  readonly why: string;
}

export interface LogReport {
  readonly files: number;
  readonly bytes: number;
  readonly lines: number;
  /** Templates. */
  readonly events: number;
  readonly writers: number;
  readonly nodesSeen: number;
  /** Healthy jobs that it was compared with. */
  readonly healthyJobs: number;
  readonly cause: LogCause | null;
  /** What else it may be, best first. */
  readonly alternatives: readonly LogCause[];
  /** Best first, then by place. */
  readonly indicating: readonly IndicatingLine[];
  readonly nodes: readonly SuspectNode[];
  readonly stage: Stage;
  readonly iterations: readonly SuspectIteration[];
  readonly missing: readonly string[];
}
