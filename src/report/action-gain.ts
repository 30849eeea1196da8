/** What an action is expected to bring, where the plan has worked it out. */
import type { Mitigation, MitigationStep } from "../model/mitigation.ts";
import type { WhatIf } from "../model/picture.ts";
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

/** `whatIf`: what stands in where no plan was made: an iteration without the suspect. */
export function gainOf(
  action: Named,
  plan: Mitigation | null | undefined,
  whatIf: WhatIf | null = null,
): Gain | null {
  const step = plan?.steps.find((one) => isOf(action, one));
  if (!plan || !step || step.iterationMs === null)
    return whatIf && MENDS.includes(action.do) ? gainWithout(whatIf, plan?.beside) : null;
  const { nowMs, healthyMs, beside } = plan;
  const thenMs = step.iterationMs;
  if (!(nowMs > 0) || !(thenMs > 0) || !(thenMs < nowMs)) return null;
  return { nowMs, thenMs, healthyMs, beside };
}

function gainWithout({ bars }: WhatIf, beside: Mitigation["beside"]): Gain | null {
  const msOf = (kind: string): number => bars.find((bar) => bar.kind === kind)?.ms ?? NaN;
  const [nowMs, thenMs, healthyMs] = [msOf("now"), msOf("without"), msOf("before")];
  return nowMs > 0 && thenMs > 0 && thenMs < nowMs
    ? { nowMs, thenMs, healthyMs: healthyMs > 0 ? healthyMs : 0, beside }
    : null;
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
