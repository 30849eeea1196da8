/** What each kind of operation is to a replay. */
import { OPERATION_KINDS } from "../../../model/stage-operations.ts";

export const KINDS = OPERATION_KINDS;

export type Kind = (typeof KINDS)[number];

const COMPUTES: readonly Kind[] = ["forward-compute", "backward-compute", "optimizer", "gc"];

/** Work of one worker alone. Its ideal duration is the mean; that of communication is the median (§3). */
export function isCompute(kind: Kind): boolean {
  return COMPUTES.includes(kind);
}

/** Passes: what a micro-batch costs. */
export function isPass(kind: Kind): boolean {
  return kind === "forward-compute" || kind === "backward-compute";
}

const SYNCED: readonly Kind[] = [
  "params-all-gather",
  "grads-reduce-scatter",
  "separate-grads-all-reduce",
  "optimizer-clip-main-grad",
];

/** Whether all replicas take part in one such operation. */
export function spansReplicas(kind: Kind): boolean {
  return SYNCED.includes(kind);
}

/** Sends and receives of one direction are one thing to a person. */
export function kindForPeople(kind: Kind): string {
  return kind.replace(/-(?:send|recv)$/, "-pp-comm");
}
