/**
 * RELIABILITY is measured and written by `npm run eval -- fit` (eval/joint/fit.ts says how): joint scenarios of 64 and 128 GPUs,
 * seeds 30001 to 30040 (healthy), 60001 to 60060, 60101 to 60125 and some thirty from 61001 and 61101 on. Error storms of the
 * first three are left out, because how tracebacks are judged changed after them.
 */
import type { MethodId } from "../model/method.ts";
import type { Evidence } from "./reliability.ts";

export interface Curve {
  readonly offset: number;
  readonly slope: number;
}

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

/** The chance of any suspect that a method names, before its weight counts: by judgement. */
export const NAMED_BEFORE = 0.12;

export const RELIABILITY: Partial<Readonly<Record<MethodId, Curve>>> = {
  "crash/first-error": { offset: 0.879, slope: 1.145 },
  "hang/stacks": { offset: 1.286, slope: 1.086 },
  "hang/wait-graph": { offset: 0.509, slope: 1.375 },
  "hang/watchdog": { offset: 0.577, slope: 1.042 },
  "logs/library": { offset: 0.378, slope: 0.846 },
  "machines/peers": { offset: -0.788, slope: 0.976 },
};
