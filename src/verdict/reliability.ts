/**
 * What a method's word is worth. A method states a weight, by its own lights; how often it is right when it says so
 * was measured on simulated jobs whose truth is known (`npm run eval -- fit`): a logistic curve a method, over the
 * log-odds of what it states. Few cases pull a curve little from "as stated".
 */
import type { MethodId } from "../model/method.ts";
import { EVIDENCE_OF, RELIABILITY } from "./reliability-table.ts";

/** Methods that read the same files are fooled together: of each kind only the strongest counts. */
export type Evidence = "operators" | "logs" | "stacks" | "metrics" | "processes" | "traces";

/** A method that doubts itself is not made surer than it is: few such cases were measured. */
const DOUBT = 0.4;
const RAMP = 0.3;

const LEAST = 0.005;
const MOST = 0.995;

/** log(p / (1 − p)), with p kept off the ends. */
export function logOdds(probability: number): number {
  const p = Math.min(MOST, Math.max(LEAST, probability));
  return Math.log(p / (1 - p));
}

export function probabilityOf(odds: number): number {
  return 1 / (1 + Math.exp(-odds));
}

/** log-odds that an accusation is right, if nobody else said anything. */
export function trustIn(method: MethodId, weight: number): number {
  const stated = logOdds(weight);
  const curve = RELIABILITY[method];
  if (!curve) return stated;
  const more = curve.offset + curve.slope * stated - stated;
  return stated + (more > 0 ? more * Math.min(1, Math.max(0, (weight - DOUBT) / RAMP)) : more);
}

export function evidenceOf(method: MethodId): Evidence {
  return EVIDENCE_OF[method];
}
