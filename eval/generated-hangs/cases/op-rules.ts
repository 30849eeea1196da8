/** How NCCL and the host treat an operator: what waits for what, and which calls it would pair. */
import type { Kind, Op } from "../../../src/simulate/flight/op.ts";

/** `Op.hostWait`: the CPU waits for everything it issued before. */
export const WAIT_ALL = -1;

const DTYPE_BYTES: Readonly<Record<string, number>> = { BFloat16: 2, Float: 4, Long: 8 };

/** Bytes that a rank puts in or takes out, whichever is more. */
export function opBytes(op: Op): number {
  return op.shape.elements * (DTYPE_BYTES[op.dtype] ?? 2);
}

/**
 * Whether NCCL would finish the two as one collective: it pairs calls by their order in the group and
 * knows nothing of what they mean, so only kind and size have to agree.
 */
export function pairs(a: Op, b: Op): boolean {
  if (a.kind === "all_to_all" && b.kind === "all_to_all") return true;
  return wireKind(a) === wireKind(b) && a.dtype === b.dtype && opBytes(a) === opBytes(b);
}

/** A barrier is an all_reduce of one element. */
function wireKind(op: Op): Kind {
  return op.kind === "all_reduce_barrier" ? "all_reduce" : op.kind;
}
