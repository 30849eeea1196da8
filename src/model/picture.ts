/**
 * What an incident is drawn from: small, worked out before anything is drawn, plain JSON. Made of a job and its verdict
 * (pipeline/picture.ts), kept by the service, drawn by report/parts on the page and in report.html alike.
 */
import type { Rank } from "./ids.ts";
import type { MachinePicture } from "./machine-picture.ts";
import type { TimelinePicture } from "./trace-picture.ts";

export interface IncidentPicture {
  readonly schema: "faultline.picture/1";
  readonly story: Story | null;
  /** Metrics of suspects' machines beside their peers', those that deviate first. */
  readonly metrics: readonly MachinePicture[];
  /** The suspects' own log lines first, whole; what others say of them after it, counted. */
  readonly logs: readonly LogExcerpt[];
  /** Where the suspects' Python stands, by the stacks among the inputs; absent in pictures of older versions. */
  readonly stacks?: readonly StackExcerpt[];
  /** Kernels around the worst step, where there are traces. */
  readonly timeline: TimelinePicture | null;
  /** What could not be drawn and why, a sentence each. */
  readonly lacks: readonly string[];
}

/**
 * Of a job that hangs the way from a rank that waits to the one that all wait for, operator by operator (Holmes §4.2); of a slow
 * one who was compared with whom, and what the one that leads does instead of waiting.
 */
export interface Story {
  /** From the symptom to the culprit; at most 8. */
  readonly hops: readonly StoryHop[];
  /** What the last one does instead of coming. */
  readonly ends: string;
}

/** One operator, and how its members came to it; or one share of the time of ranks that were compared. */
export interface StoryHop {
  /** inside, own: of an iteration, the time in operators and outside of them; wires: what communication takes at least. */
  readonly kind: "collective" | "transfer" | "inside" | "own" | "wires";
  /** "all_reduce #241 of DATA_PARALLEL_1" */
  readonly title: string;
  /** Who waited, who did not come; who leads whom by how much. */
  readonly says: string;
  /** The rank whose waiting is looked at here, and the one it leads to; the same where it leads nowhere. */
  readonly from: Rank;
  readonly to: Rank;
  /** At most 64, the ones named above among them; in the order of the group. */
  readonly bars: readonly StoryBar[];
  /** Members without a bar. */
  readonly leftOut: number;
}

export interface StoryBar {
  readonly rank: Rank;
  readonly machine: string | null;
  /** Of a wire its name; absent of ranks. */
  readonly label?: string;
  /**
   * Milliseconds that it has waited in the operator; null where it never arrived, or where nobody knows. Of ranks and wires that
   * were compared: milliseconds of an iteration.
   */
  readonly ms: number | null;
  /** Of what was compared: the same before it became slow; else null. */
  readonly beforeMs: number | null;
  /** late: the others wait for it; absent: it never arrived; waits: it only waits. */
  readonly role: "late" | "absent" | "waits";
}

/** Whether it is an operator, in which ranks wait for each other: else time that was compared. */
export function isOperator({ kind }: Pick<StoryHop, "kind">): boolean {
  return kind === "collective" || kind === "transfer";
}

/** The stack of a suspect's main thread. */
export interface StackExcerpt {
  readonly file: string;
  readonly rank: Rank;
  /** py-spy's word for what the thread does; "" where unknown. */
  readonly status: string;
  /** Innermost first: "train_step (/srv/job/train.py:159)"; at most 64. */
  readonly frames: readonly string[];
  readonly leftOut: number;
}

/** Lines of a log around those that tell something. */
export interface LogExcerpt {
  readonly file: string;
  readonly rank: Rank | null;
  readonly node: string | null;
  readonly lines: readonly {
    /** From 1; null where it is not known. */
    readonly line: number | null;
    /** Cut to 2,000 characters. */
    readonly text: string;
    /** Whether it tells of the failure; the others are what stood around it. */
    readonly isKey: boolean;
    /** Milliseconds since 1970. */
    readonly timeMs: number | null;
    /** Lines that it stands for. */
    readonly count: number;
  }[];
}
