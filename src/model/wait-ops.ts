/** The stuck operators that the wait graph of a hang lists. */
import { factOf, type Absence, type StuckOperator } from "./facts.ts";
import type { Verdict } from "./verdict.ts";

export const ABSENCES = ["silent", "not-enqueued", "behind"] as const satisfies readonly Absence[];

export interface WaitOps {
  readonly findingId: string;
  readonly ops: readonly StuckOperator[];
  /** Operators that are stuck, including those that the finding does not list. */
  readonly stuckOps: number;
}

export function readWaitOps(verdict: Verdict): WaitOps | null {
  for (const finding of verdict.findings) {
    const waiting = factOf(finding, "waiting-ranks");
    if (waiting && waiting.ops.length > 0)
      return { findingId: finding.id, ops: waiting.ops, stuckOps: waiting.stuckOps };
  }
  return null;
}
