/** What was measured on a real GPU, written down by hand: cited like an evaluation, so that a figure that goes is missed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "./results.ts";

export const LAB = "../lab/RESULTS.md";

export function labResults(root: string): Result {
  return {
    topic: "lab",
    isQuick: false,
    commit: "",
    day: "2026-11-15",
    isChanged: false,
    machine: "one H200, 16 cores",
    runs: [
      {
        script: LAB,
        options: [],
        seconds: 0,
        status: 0,
        output: readFileSync(join(root, "lab/RESULTS.md"), "utf8"),
      },
    ],
  };
}
