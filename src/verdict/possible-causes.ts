/** What ails the ranks that are named: one cause, or several among which nothing decides. */
import type { Cause } from "../model/cause.ts";
import type { Accusation, VerdictKind } from "../model/finding.ts";

export interface PossibleCause {
  readonly cause: Cause;
  /** Among these causes. */
  readonly share: number;
  readonly why: string;
}

/** The causes that one finding leaves open, the likelier first. */
export function possibleCauses(own: readonly Accusation[]): readonly PossibleCause[] {
  const sum = own.reduce((total, { weight }) => total + weight, 0);
  return own.map(({ cause, weight, why }) => ({ cause, share: weight / sum || 1, why }));
}

/** `other`: what something else knows of the same ranks. It decides between open causes; a general cause gives way to it. */
export function decidedBy(
  causes: readonly PossibleCause[],
  kind: VerdictKind,
  other: Cause,
): readonly PossibleCause[] {
  const isOpen = causes.length > 1;
  const general = causes.find(({ cause }) =>
    cause === other ? isOpen : givesWay(cause, kind, other),
  );
  return general ? [{ cause: other, share: 1, why: general.why }] : causes;
}

const HOLDS_UP_A_CPU: readonly Cause[] = [
  "process-stopped",
  "process-gone",
  "dataloader",
  "storage",
  "garbage-collection",
  "synchronization",
];

function givesWay(general: Cause, kind: VerdictKind, other: Cause): boolean {
  if (general === "process-gone")
    return other === (kind === "crash" ? "host-memory" : "process-stopped");
  return general === "unknown" || isOfSide(general, other);
}

/** Whether another witness's cause is this one, or a special case of it. */
export function isOfSide(general: Cause, other: Cause): boolean {
  return other === general || (general === "cpu-stall" && HOLDS_UP_A_CPU.includes(other));
}
