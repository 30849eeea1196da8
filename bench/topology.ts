/**
 * How long a topology plan takes and how good it is: `npm run bench:topology`. Random faults (seeded) on jobs of 64 to
 * 8,192 nodes, with micro-batches as they are and shared out anew; then jobs of at most 8 nodes against all
 * permutations. Times are the median of --rounds plans (3), wall clock and CPU.
 */
import { performance } from "node:perf_hooks";
import { pick, randomInt, seeded, type Random } from "../src/base/random.ts";
import { sample } from "../test/support/sample.ts";
import { allocateMicroBatches } from "../src/mitigate/microbatches.ts";
import { identity, iterationMs, type Rebalance } from "../src/mitigate/topology/cost-model.ts";
import { planTopology } from "../src/mitigate/topology/plan-topology.ts";
import type { PlacedJob, SlowLink, TopologyPlan } from "../src/model/mitigation.ts";

interface Shape {
  readonly replicas: number;
  readonly stages: number;
  readonly bad: number;
  readonly links: number;
  readonly slotsPerMachine: number;
}

const shape = (
  replicas: number,
  stages: number,
  bad: number,
  links: number,
  slotsPerMachine = 1,
): Shape => ({ replicas, stages, bad, links, slotsPerMachine });

const LARGE = [
  shape(16, 4, 4, 2),
  shape(8, 8, 8, 4),
  shape(8, 8, 64, 0),
  shape(32, 8, 10, 4),
  shape(16, 16, 20, 8),
  shape(16, 16, 20, 8, 2),
  shape(128, 8, 30, 10),
  shape(64, 16, 5, 2),
  shape(64, 16, 30, 10),
  shape(64, 16, 30, 10, 4),
  shape(64, 16, 100, 30),
  shape(64, 16, 1024, 0),
  shape(512, 8, 30, 10),
  shape(256, 16, 30, 10),
  shape(256, 16, 120, 40),
];

/** Far more faults than a job would be run with: what the work is bounded for. */
const CROWDED = [
  shape(128, 8, 200, 500, 8),
  shape(64, 16, 200, 500, 8),
  shape(128, 8, 100, 1000),
  shape(2, 512, 100, 300),
  shape(128, 8, 500, 5000),
  shape(1024, 1, 100, 1000),
  shape(1024, 8, 800, 1000, 8),
];

const SMALL = [shape(2, 2, 2, 2), shape(2, 3, 3, 2), shape(3, 2, 3, 2), shape(2, 4, 4, 3)];
const SMALL_JOBS = 50;

function drawJob(
  random: Random,
  { replicas, stages, bad, links, slotsPerMachine }: Shape,
): PlacedJob {
  const size = replicas * stages;
  const factors = Array.from({ length: size }, () => ({ compute: 1, network: 1 }));
  const order = Array.from({ length: size }, (_, i) => ({ i, key: random() }));
  order.sort((a, b) => a.key - b.key);
  for (const { i } of order.slice(0, bad)) {
    const kind = randomInt(random, 4);
    if (kind < 3) factors[i]!.compute = 1.1 + random();
    if (kind > 1) factors[i]!.network = 1.2 + 3 * random();
  }
  const slow: SlowLink[] = [];
  while (slow.length < links) {
    // Links that gradients pass, or activations: others have not been noticed.
    const a = randomInt(random, size);
    const sameStage = a - (a % replicas) + randomInt(random, replicas);
    const b = pick(random, [sameStage, (a + replicas) % size]);
    if (a !== b) slow.push({ a, b, factor: 1.5 + 4 * random() });
  }
  const microBatches = 4 * stages;
  return {
    replicas,
    stages,
    microBatches: Array.from({ length: replicas }, () => microBatches),
    // Embedding and head make the outer stages heavier.
    stageMs: Array.from({ length: stages }, (_, s) => (s === 0 || s === stages - 1 ? 66 : 60)),
    gradientMs: Array.from({ length: stages }, () => 350),
    activationMs: 4,
    restMs: 60,
    slots: factors.map((factor, i) => ({
      name: `node${i}`,
      machine: `machine${Math.floor(i / slotsPerMachine)}`,
      ...factor,
    })),
    links: slow,
  };
}

/** Slow GPUs and slow NICs drawn apart from each other, and slow links between any two slots. */
function drawCrowded(random: Random, one: Shape): PlacedJob {
  const { replicas, stages, bad, links } = one;
  const size = replicas * stages;
  const job = drawJob(random, { ...one, bad: 0, links: 0 });
  const slots = job.slots.map((slot) => ({ ...slot }));
  for (const i of sample(random, size, bad)) slots[i]!.compute = 1.1 + 1.9 * random();
  for (const i of sample(random, size, bad)) slots[i]!.network = 1.1 + 6.9 * random();
  const slow: SlowLink[] = [];
  while (slow.length < links) {
    const a = randomInt(random, size);
    const b = randomInt(random, size);
    if (a !== b) slow.push({ a, b, factor: 2 + 8 * random() });
  }
  return {
    ...job,
    microBatches: job.microBatches.map(() => 16),
    stageMs: job.stageMs.map(() => 20),
    gradientMs: job.gradientMs.map(() => 100),
    activationMs: 5,
    restMs: 0,
    slots,
    links: slow,
  };
}

function sharedOut(job: PlacedJob): Rebalance {
  const total = job.microBatches.reduce((sum, m) => sum + m, 0);
  return (times, fixed) =>
    allocateMicroBatches({ timesMs: [...times], total, fixedMs: [...fixed] }).makespan;
}

function bruteForceMs(job: PlacedJob, rebalance: Rebalance | undefined): number {
  const size = job.slots.length;
  const placeOf = identity(size);
  let least = Infinity;
  const visit = (from: number): void => {
    if (from === size) least = Math.min(least, iterationMs(job, placeOf, rebalance));
    for (let i = from; i < size; i++) {
      exchange(placeOf, from, i);
      visit(from + 1);
      exchange(placeOf, from, i);
    }
  };
  visit(0);
  return least;
}

function exchange(values: Int32Array, i: number, j: number): void {
  const value = values[i]!;
  values[i] = values[j]!;
  values[j] = value;
}

const median = (values: number[]): number =>
  values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
const columns = (cells: readonly (string | number)[]): string =>
  cells.map((cell) => String(cell).padStart(9)).join("");

const flag = process.argv.indexOf("--rounds");
const rounds = flag < 0 ? 3 : Number(process.argv[flag + 1]);
const random = seeded(11);
const jobs = [
  ...LARGE.map((one) => ({ ...one, job: drawJob(random, one) })),
  ...CROWDED.map((one) => ({ ...one, job: drawCrowded(random, one) })),
];
planTopology(jobs[0]!.job); // so that the first line does not show the compiler's time

for (const isShared of [false, true]) {
  console.log(isShared ? "\nmicro-batches shared out anew" : "micro-batches as they are");
  console.log(
    columns(
      "nodes,replicas,stages,a machine,slow,links,before,after,healthy,swaps,wall ms,CPU ms".split(
        ",",
      ),
    ),
  );
  for (const { job, replicas, stages, bad, links, slotsPerMachine } of jobs) {
    const options = isShared ? { rebalance: sharedOut(job) } : {};
    let plan: TopologyPlan | undefined;
    const wall: number[] = [];
    const cpu: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const start = performance.now();
      const used = process.cpuUsage();
      plan = planTopology(job, options);
      wall.push(performance.now() - start);
      cpu.push(process.cpuUsage(used).user / 1000);
    }
    const { beforeMs, afterMs, healthyMs, swaps } = plan!;
    const times = [beforeMs, afterMs, healthyMs, swaps.length, median(wall), median(cpu)];
    const who = [replicas * stages, replicas, stages, slotsPerMachine, bad, links];
    console.log(columns([...who, ...times.map(Math.round)]));
  }
}

console.log(`\ngap to the best of all permutations, ${SMALL_JOBS} jobs each`);
console.log(
  columns(["replicas", "stages", "a machine", "shared", "mean %", "worst %", "above 1 %"]),
);
for (const one of SMALL)
  for (const slotsPerMachine of [1, 2])
    for (const isShared of [false, true]) {
      // 8! permutations with an allocation each would take minutes.
      if (isShared && one.replicas * one.stages > 6) continue;
      const gaps: number[] = [];
      const draw = seeded(12);
      for (let i = 0; i < SMALL_JOBS; i++) {
        const job = drawJob(draw, { ...one, slotsPerMachine });
        const rebalance = isShared ? sharedOut(job) : undefined;
        const { afterMs } = planTopology(job, rebalance ? { rebalance } : {});
        gaps.push(100 * (afterMs / bruteForceMs(job, rebalance) - 1));
      }
      const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
      const above = gaps.filter((gap) => gap > 1).length;
      const { replicas, stages } = one;
      const found = [mean.toFixed(3), Math.max(...gaps).toFixed(3), above];
      console.log(columns([replicas, stages, slotsPerMachine, isShared ? "yes" : "no", ...found]));
    }
