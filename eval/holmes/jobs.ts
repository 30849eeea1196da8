/** Simulated jobs to learn from and to be tested on, drawn by number: same number, same job. */
import { pick, randomInt, seeded } from "../../src/base/random.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";

export type JobSet = "train" | "validate" | "test";

type Layout = Partial<Pick<ClusterSpec, "tp" | "pp" | "dp" | "cp" | "ep" | "schedule">>;

const LEARNT: readonly Layout[] = [
  { tp: 2, pp: 2, dp: 4 },
  { tp: 4, pp: 1, dp: 4 },
  { tp: 1, pp: 4, dp: 4 },
  { tp: 4, pp: 2, dp: 4 },
  { tp: 2, pp: 4, dp: 4, schedule: "interleaved" },
  { tp: 2, pp: 2, dp: 8, ep: 4 },
  { tp: 4, pp: 4, dp: 2 },
  { tp: 4, pp: 4, dp: 4 },
  { tp: 8, pp: 2, dp: 4 },
  { tp: 2, pp: 4, dp: 4, cp: 2 },
];
/** None of them is learnt from. */
const TESTED: readonly Layout[] = [
  { tp: 2, pp: 4, dp: 2 },
  { tp: 2, pp: 3, dp: 4 },
  { tp: 8, pp: 2, dp: 2 },
  { tp: 1, pp: 4, dp: 8 },
  { tp: 4, pp: 3, dp: 4 },
  { tp: 4, pp: 2, dp: 8 },
  { tp: 4, pp: 8, dp: 2 },
  { tp: 2, pp: 2, dp: 16, ep: 8 },
];
const CAUSES = ["gpu-slow", "cpu-stall", "network-slow"] as const;
const SHAPES = ["steady", "spike", "fluctuation"] as const;
/** Seeds of the sets do not meet. */
const FIRST_SEED: Readonly<Record<JobSet, number>> = {
  train: 1_000_000,
  validate: 2_000_000,
  test: 3_000_000,
};
/** One job in this many is healthy. */
const HEALTHY_EVERY = 6;
export const ITERATIONS = 130;

export interface DrawnJob {
  readonly spec: ClusterSpec;
  readonly healthy: ClusterSpec;
  /** "healthy" where there is none. */
  readonly cause: string;
}

export function drawJob(set: JobSet, number: number): DrawnJob {
  const seed = FIRST_SEED[set] + number;
  const random = seeded(seed);
  const layouts = set === "test" ? TESTED : LEARNT;
  const layout = layouts[number % layouts.length]!;
  const size = {
    hidden: pick(random, [2048, 4096, 8192]),
    microBatches: pick(random, [1, 2, 3]) * 4,
    layersPerStage: pick(random, [2, 4]),
    noise: 1 + random(),
  };
  return faultyJob({ ...layout, ...size, seed }, number, random);
}

/** Jobs that differ in seed and fault only: what the paper trains a model for (§5.1, "System configuration"). */
export function drawSimilarJob(set: JobSet, layout: number, number: number): DrawnJob {
  const seed = FIRST_SEED[set] + 100_000 * (layout + 1) + number;
  const size = { hidden: 4096, microBatches: 8, layersPerStage: 4, noise: 1 };
  return faultyJob({ ...LEARNT[layout]!, ...size, seed }, number, seeded(seed));
}

function faultyJob(given: Partial<ClusterSpec>, number: number, random: () => number): DrawnJob {
  const healthy = completeSpec({ ...given, iterations: ITERATIONS });
  if (number % HEALTHY_EVERY === HEALTHY_EVERY - 1)
    return { spec: healthy, healthy, cause: "healthy" };
  const cause = pick(random, CAUSES);
  const severity = (1.3 + 2.7 * random() ** 2).toFixed(2);
  const from = 60 + randomInt(random, 40);
  const place =
    cause === "network-slow" && random() < 0.3
      ? `switch=leaf${randomInt(random, healthy.gpusPerMachine)}`
      : `rank=${randomInt(random, healthy.gpus)}`;
  const fault = `${cause}:${place}:severity=${severity}:shape=${pick(random, SHAPES)}:from=${from}`;
  return { spec: { ...healthy, faults: [parseFault(fault)] }, healthy, cause };
}
