import type { Broken } from "./break-job.ts";
import type { RankRun } from "./rank-run.ts";
import type { FaultKind } from "./faults.ts";
import type { Op } from "../../../src/simulate/flight/op.ts";
import { isP2p } from "../../../src/simulate/flight/op.ts";
import { openWaits } from "./waits.ts";

/**
 * Whether a run is the hang that was meant: every culprit reached its fault, and everybody else is
 * stuck waiting. A rank that ran to the end of its program was not hung, unless the program's end is
 * where a skipped collective surfaces.
 */
export function isGenuine(
  kind: FaultKind,
  { execution, culprits, deviation, blindFrom }: Broken,
): boolean {
  const waits = openWaits(execution);
  const guilty = new Set(culprits.map((c) => c.rank));
  const isStuck = (rank: number): boolean => (waits[rank] ?? []).length > 0;
  if (!execution.runs.every((_, rank) => guilty.has(rank) || isStuck(rank))) return false;
  return culprits.every(({ rank, index }) => {
    const run = execution.runs[rank] as RankRun;
    if (kind === "network-hang")
      return (waits[rank] ?? []).some((wait) => wait.index === index && wait.meeting.dead);
    if (deviation !== null)
      return run.issued > index && (isStuck(rank) || run.issued === run.ops.length);
    if (kind === "gpu-hang") return run.issued > index && isIdleBefore(run, index);
    if (kind === "gpu-error") return isWitnessed(run, blindFrom.get(rank) as number);
    return run.issued === index && isIdleBefore(run, index);
  });
}

/** All operators of the compute stream before `index` have ended. */
function isIdleBefore(run: RankRun, index: number): boolean {
  for (let i = index - 1; i >= 0; i--)
    if (run.ops[i]?.async !== true) return !Number.isNaN(run.endNs[i]);
  return true;
}

/** The blind GPU still took part in a collective, and then stopped by itself, not in one. */
function isWitnessed(run: RankRun, blindFrom: number): boolean {
  let witnessed = false;
  for (let i = blindFrom; i < run.issued; i++) {
    const op = run.ops[i] as Op;
    if (op.async) continue;
    if (Number.isNaN(run.startNs[i])) return witnessed;
    if (Number.isNaN(run.endNs[i])) return false;
    witnessed ||= !isP2p(op);
  }
  return false;
}
