/** Table 5: V_minority of one job as position embedding, activation and norms lose their fused kernels. */
import { median } from "../../src/maths/robust.ts";
import { compareRun } from "../../src/methods/traces/compare-run.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import { STEPS } from "./jobs.ts";
import { profileOf } from "./traced-run.ts";

/** Megatron with one stage: no bubble in which nothing runs. */
export const TABLE_5_JOB = completeSpec({
  gpus: 16,
  tp: 2,
  pp: 1,
  hidden: 8192,
  sequence: 8192,
  layersPerStage: 2,
  microBatches: 4,
  iterations: 8,
  launchQueue: 128,
  issueNs: 80_000,
  placement: 1,
  sharesByFlops: true,
});
const PAPER = [
  { how: "", name: "Healthy", vMinority: 9 },
  { how: "pe", name: "-PE", vMinority: 14 },
  { how: "pe-act", name: "-PE-ACT", vMinority: 15 },
  { how: "pe-act-norm", name: "-PE-ACT-NORM", vMinority: 28 },
];

/**
 * By how much a step grows when minority kernels grow from 9 % of it to the table's share and all else stays: from
 * V = m / (m + r), m = r · V / (1 − V).
 */
export function unfusedCost(how: string): number {
  const ratio = (percent: number): number => percent / (100 - percent);
  const grown = ratio(PAPER.find((row) => row.how === how)!.vMinority);
  return (grown - ratio(9)) / (1 + ratio(9));
}

export function writeMinoritySteps(seed: number): void {
  const ranks = [0, 1, 2, 15];
  const runOf = (how: string, ownSeed: number) => {
    const faults =
      how === ""
        ? []
        : [parseFault(`minority-kernels:how=${how}:cost=${unfusedCost(how).toFixed(4)}`)];
    return profileOf({ ...TABLE_5_JOB, seed: ownSeed, faults }, ranks, STEPS, how);
  };
  const healthy = [1, 2].map((i) => runOf("", 1_000_000 * seed + 900_000 + i));
  console.log(
    "\n## Table 5: V_minority\n\n| | paper | measured | normalised speed | answer |\n|---|---|---|---|---|",
  );
  const stepMs = (run: (typeof healthy)[number]): number =>
    median(run.ranks.map((rank) => median(rank.stepMs)));
  PAPER.forEach(({ how, name, vMinority }, i) => {
    const run = runOf(how, 1_000_000 * seed + 900_010 + i);
    const share = median(run.ranks.map((rank) => median(rank.vMinority)));
    const said = compareRun(run, healthy).regressions.map(({ cause }) => cause);
    const speed = (stepMs(healthy[0]!) / stepMs(run)).toFixed(2);
    console.log(
      `| ${name} | ${vMinority} % | ${(100 * share).toFixed(1)} % | ${speed} | ${said.join(", ") || "nothing"} |`,
    );
  });
}
