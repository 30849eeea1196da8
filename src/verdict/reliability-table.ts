/** Measured; written by `npm run eval -- fit` (eval/joint/fit.ts says how). */
import type { Evidence } from "./reliability.ts";

export interface Curve {
  readonly offset: number;
  readonly slope: number;
}

export const EVIDENCE_OF: Readonly<Record<string, Evidence>> = {
  "hang/wait-graph": "operators",
  "localize/slow-rank": "operators",
  "localize/slow-link": "operators",
  "localize/what-if": "operators",
  "iterations/slow-down": "operators",
  "crash/first-error": "logs",
  "logs/library": "logs",
  "hang/watchdog": "logs",
  "hang/stacks": "stacks",
  "machines/peers": "metrics",
  "machines/switch": "metrics",
  "hang/process": "processes",
  "hang/connections": "processes",
  "hang/ras": "processes",
  "host/open-calls": "processes",
  "host/python-time": "processes",
  "validation/tests": "processes",
  "traces/regression": "traces",
};

/** The chance of whoever a method names at all, before what it says is weighed; measured with the curves. */
export const NAMED_BEFORE = 0.12;

export const RELIABILITY: Readonly<Record<string, Curve>> = {
  "crash/first-error": { offset: -1.063, slope: 1.149 },
  "hang/stacks": { offset: 1.02, slope: 1.072 },
  "hang/wait-graph": { offset: 0.294, slope: 1.335 },
  "hang/watchdog": { offset: 0.427, slope: 1.049 },
  "localize/slow-rank": { offset: 0.463, slope: 1.173 },
  "logs/library": { offset: 0.184, slope: 0.943 },
  "machines/peers": { offset: -0.657, slope: 0.989 },
};
