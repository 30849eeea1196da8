/** What an action is expected to bring, where the plan has worked it out. */
import { factOf } from "../model/facts.ts";
import type { Mitigation, MitigationStep } from "../model/mitigation.ts";
import type { Verdict } from "../model/verdict.ts";
import { time, withoutIt } from "./mitigation-words.ts";

interface Gain {
  readonly nowMs: number;
  readonly thenMs: number;
  /** Without the fault. */
  readonly healthyMs: number;
  readonly beside: Mitigation["beside"];
}

interface Named {
  readonly do: string;
  readonly target: string;
}

/** Ways to take a machine out; all leave the job as a restart without it does. */
const TAKES_OUT = ["cordon-node", "exclude-node", "replace-machine", "restart-without"];
/** Ways to fix the suspect itself. */
const MENDS = [...TAKES_OUT, "replace-link"];

export type Planned = Pick<Verdict, "answer" | "findings" | "mitigation"> &
  Partial<Pick<Verdict, "suspects">>;

export function gainOf(action: Named, verdict: Planned): Gain | null {
  const plan = verdict.mitigation;
  // Who mends the suspect gets back what the first screen says it costs; a model of the job has other numbers.
  const measured = MENDS.includes(action.do) ? measuredOf(verdict) : null;
  if (measured) return { ...measured, beside: plan?.beside };
  const step = plan?.steps.find((one) => isOf(action, one));
  if (!plan || !step || step.iterationMs === null) return null;
  const { nowMs, healthyMs, beside } = plan;
  const thenMs = step.iterationMs;
  if (!(nowMs > 0) || !(thenMs > 0) || !(thenMs < nowMs)) return null;
  return { nowMs, thenMs, healthyMs, beside };
}

/** The pace with and without the suspect, where what the job lost is the suspect's doing. */
function measuredOf({ answer, findings, suspects }: Planned): Omit<Gain, "beside"> | null {
  // Who mends one of two gets back a part.
  if (answer?.slower === null || (suspects && suspects.length > 1)) return null;
  for (const finding of findings) {
    const slow = factOf(finding, "slow-down");
    if (!slow || slow.intermittent || slow.wastedHours === null) continue;
    const { beforeMs, afterMs } = slow;
    return beforeMs > 0 && afterMs > beforeMs
      ? { nowMs: afterMs, thenMs: beforeMs, healthyMs: beforeMs }
      : null;
  }
  return null;
}

function isOf({ do: what, target }: Named, step: MitigationStep): boolean {
  if (step.do === what) return true;
  if (what === "micro-batches") return step.microBatches !== undefined;
  return TAKES_OUT.includes(what) && (step.exclude?.includes(target) ?? false);
}

/** "412 ms → 265 ms an iteration, 36 % less (healthy 250 ms)" */
export function gainWords({ nowMs, thenMs, healthyMs, beside }: Gain): string {
  const less = Math.round(100 * (1 - thenMs / nowMs));
  return `${time(nowMs)} → ${time(thenMs)} per iteration, ${less} % less${withoutIt(healthyMs, beside)}`;
}
