/**
 * When a step is due (Greyhound §5.1, Algorithm 1): once it would have saved as much as it costs. What the slowdown has cost is
 * measured, so what an earlier step saves, or a fault that comes and goes, puts the later ones off.
 */
import type { Incident, IncidentAction } from "../../../model/incident.ts";
import type { Mitigation, MitigationStep, Strategy } from "../../../model/mitigation.ts";

/** Marking a machine costs a job nothing; these end it, or a part of it. */
const RESTARTS: readonly string[] = ["restart-job", "restart-without", "replace-machine"];

/** `lostMs`: what the job has lost to the incident so far. An action that no step stands for is due at once. */
export function isDue(incident: Incident, { do: word }: IncidentAction, lostMs: number): boolean {
  const plan = incident.verdict?.mitigation;
  const step = plan ? stepOf(plan, word) : undefined;
  return !plan || !step || savedShare(step, plan) * lostMs >= step.overheadMs;
}

/** "; pays off once the slowdown has cost 30 min"; nothing where it costs next to nothing. */
export function dueWords(incident: Incident, word: string): string {
  const plan = incident.verdict?.mitigation;
  const step = plan ? stepOf(plan, word) : undefined;
  if (!plan || !step || step.overheadMs < plan.nowMs) return "";
  const share = savedShare(step, plan);
  if (share <= 0) return "; would save less than it costs";
  return `; pays off once the slowdown has cost ${timeWords(step.overheadMs / share)}`;
}

/** Of what the slowdown costs, how much the step would have saved. */
function savedShare({ iterationMs }: MitigationStep, { nowMs, healthyMs }: Mitigation): number {
  // A restart without the machine is as if nothing had been.
  const withIt = iterationMs ?? healthyMs;
  return nowMs > healthyMs ? Math.min(1, Math.max(0, (nowMs - withIt) / (nowMs - healthyMs))) : 0;
}

function stepOf({ steps }: Mitigation, word: string): MitigationStep | undefined {
  const strategy: Strategy | null =
    word === "micro-batches"
      ? "S2"
      : word === "swap-nodes"
        ? "S3"
        : RESTARTS.includes(word)
          ? "S4"
          : null;
  return steps.find((step) => step.strategy === strategy);
}

function timeWords(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}
