/** How little a needless synchronisation may cost and is still found; FLARE found one of 2.66 % (§7.3.1). */
import { compareRun } from "../../src/methods/traces/compare-run.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { drawCase } from "./cases.ts";
import { STEPS } from "./jobs.ts";
import { profileOf } from "./traced-run.ts";

const COSTS = [0.005, 0.01, 0.0133, 0.02, 0.0266, 0.04];

export function writeLeastSync(seed: number, jobs: number): void {
  console.log("\n## Synchronisation around every micro-batch of Megatron jobs, by what it costs\n");
  const found = COSTS.map(() => 0);
  const possible = COSTS.map(() => 0);
  for (let i = 0; i < jobs; i++) {
    const one = drawCase(1_000_000 * seed + 910_000 + i, null, "megatron");
    const healthy = one.healthy.map((spec) => profileOf(spec, one.ranks, STEPS, "healthy"));
    COSTS.forEach((cost, c) => {
      const faults = [parseFault(`synchronization:how=micro-batch:cost=${cost}`)];
      try {
        const run = profileOf({ ...one.run, faults }, one.ranks, STEPS, "run");
        possible[c]!++;
        if (compareRun(run, healthy).regressions[0]?.cause === "synchronization") found[c]!++;
      } catch {
        // In this job it costs more in any case.
      }
    });
  }
  console.log("| cost of the step | found |\n|---|---|");
  COSTS.forEach((cost, c) =>
    console.log(`| ${(100 * cost).toFixed(2)} % | ${found[c]}/${possible[c]} |`),
  );
}
