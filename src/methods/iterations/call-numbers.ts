/** Which number a training log gives to the iteration that a call ends; its first is 1. */
import type { OperatorTable } from "../../model/operators.ts";
import { P2P, type CallSequence } from "./call-classes.ts";
import type { Ending } from "./call-segments.ts";

/** Groups with fewer calls an iteration may be off by the calls of the initialisation. */
const LEAST_CALLS = 4;

export function iterationAt(
  ops: OperatorTable,
  calls: CallSequence,
  { call, segment }: Ending,
): number {
  const { symbols } = calls;
  const { marker, markersPerIteration } = segment.anchor;
  if (isWhole(ops)) {
    let markers = 0;
    for (let i = 0; i <= call; i++) if (symbols[i] === marker) markers++;
    return Math.max(1, Math.round(markers / markersPerIteration));
  }
  return Math.max(1, fromSequenceNumbers(ops, calls, call, segment));
}

/** Whether the record begins where the job began, rather than where a ring was overwritten. */
function isWhole(ops: OperatorTable): boolean {
  const first = ops.recordId[0];
  if (first !== undefined && !Number.isNaN(first) && first > 0) return false;
  if (first === 0) return true;
  // Transfers have no number of their group's.
  const collective = ops.isP2p.indexOf(0);
  return (collective < 0 ? ops.p2pSeq[0]! : ops.seq[collective]!) <= 1;
}

/**
 * Sequence numbers count a group's calls since the job began, so at the end of iteration n they are n times
 * the calls of one, and a few from the initialisation. The marker's group first, because an evaluation
 * calls nothing in it; then the one with most calls, in which a few do not matter.
 */
function fromSequenceNumbers(
  ops: OperatorTable,
  calls: CallSequence,
  end: number,
  { pattern, anchor }: Ending["segment"],
): number {
  const perGroup = new Map<number, number>();
  const p2pOnly = pattern.every((symbol) => isP2p(calls, symbol));
  for (const symbol of pattern) {
    if (isP2p(calls, symbol) !== p2pOnly) continue;
    const { group } = calls.classes[symbol]!;
    perGroup.set(group, (perGroup.get(group) ?? 0) + 1);
  }
  let group = calls.classes[anchor.marker]!.group;
  if ((perGroup.get(group) ?? 0) < LEAST_CALLS) {
    for (const [other, count] of perGroup) if (count > (perGroup.get(group) ?? 0)) group = other;
  }
  const each = perGroup.get(group)!;
  for (let i = end; i >= 0; i--) {
    const op = calls.ops[i]!;
    if (ops.group[op] !== group || (ops.isP2p[op] === 1) !== p2pOnly) continue;
    return Math.floor((p2pOnly ? ops.p2pSeq[op]! : ops.seq[op]!) / each);
  }
  return 1;
}

function isP2p(calls: CallSequence, symbol: number): boolean {
  return calls.classes[symbol]!.kind === P2P;
}
