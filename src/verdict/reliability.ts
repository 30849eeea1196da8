/**
 * What a method's word is worth. A method states a weight, by its own lights; how often it is right when it says so
 * was measured on simulated jobs whose truth is known (`npm run eval -- fit`): a logistic curve a method, over the
 * log-odds of what it states. Few cases pull a curve little from "as stated".
 */
import type { MethodId } from "../model/method.ts";

/** Methods that read the same files are fooled together: of each kind only the strongest counts. */
export type Evidence = "operators" | "logs" | "stacks" | "metrics" | "processes" | "traces";

export const EVIDENCE_OF: Readonly<Record<MethodId, Evidence>> = {
  "hang/wait-graph": "operators",
  "slow/judge": "operators",
  "iterations/slow-down": "operators",
  "crash/first-error": "logs",
  "logs/library": "logs",
  "hang/watchdog": "logs",
  "hang/stacks": "stacks",
  "machines/peers": "metrics",
  "hang/process": "processes",
  "hang/connections": "processes",
  "hang/ras": "processes",
  "host/open-calls": "processes",
  "host/python-time": "processes",
  "validation/tests": "processes",
  "traces/regression": "traces",
  "iterations/live": "operators",
  "slow/live": "operators",
  "live/processes": "processes",
  // Nothing is weighed after it.
  "site/judged": "processes",
};

/**
 * Measured and written by `npm run eval -- fit` (eval/joint/fit.ts says how): joint scenarios of 64 and 128 GPUs,
 * seeds 30001 to 30040 (healthy), 60001 to 60060, 60101 to 60125 and some thirty from 61001 and 61101 on. Error storms of the
 * first three are left out, because how tracebacks are judged changed after them.
 */
const RELIABILITY: Partial<Record<MethodId, { readonly offset: number; readonly slope: number }>> =
  {
    "crash/first-error": { offset: 0.879, slope: 1.145 },
    "hang/stacks": { offset: 1.286, slope: 1.086 },
    "hang/wait-graph": { offset: 0.509, slope: 1.375 },
    "hang/watchdog": { offset: 0.577, slope: 1.042 },
    "logs/library": { offset: 0.378, slope: 0.846 },
    "machines/peers": { offset: -0.788, slope: 0.976 },
  };

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
