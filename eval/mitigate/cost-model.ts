/**
 * The planner's cost model against the simulator: what it expects an iteration to take with known faults, as things are,
 * with micro-batches shared out anew and with places changed, and what the simulated job then takes. Costs are learnt
 * from healthy iterations of the same job, factors of slow places are measured, those of links are the true ones, as tests would
 * measure them.
 */
import { randomInt, seeded } from "../../src/base/random.ts";
import { median } from "../../src/maths/robust.ts";
import type { Trouble } from "./mitigator.ts";
import { remediesOf } from "../../src/mitigate/remedies.ts";
import type { PlacedJob } from "../../src/model/mitigation.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import type { Steering } from "../../src/simulate/cluster/steering.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import { knownJob, placeOfRank, ranksAt, seatsOf } from "./known-job.ts";
import { profileOf, type Profile } from "./profile.ts";

const SHAPES: readonly Partial<ClusterSpec>[] = [
  { gpus: 16, tp: 1, pp: 4, dp: 4, gpusPerMachine: 1 },
  { gpus: 32, tp: 2, pp: 2, dp: 8, gpusPerMachine: 2 },
  { gpus: 64, tp: 4, pp: 4, dp: 4, gpusPerMachine: 4 },
  { gpus: 16, tp: 2, pp: 1, dp: 8, gpusPerMachine: 2 },
  { gpus: 64, tp: 8, pp: 1, dp: 8, gpusPerMachine: 8 },
];
const ITERATIONS = 8;

export interface Compared {
  readonly strategy: string;
  readonly expectedMs: number;
  readonly simulatedMs: number;
}

/** What is expected and what comes, for the job of a seed. */
export function compareWithSimulator(seed: number): Compared[] {
  const random = seeded(seed);
  const shape = { microBatches: 8, iterations: ITERATIONS, seed, ...SHAPES[seed % SHAPES.length]! };
  const healthy = runOf(simulationOf({ ...shape, faults: [] }), null);
  const faults: string[] = [];
  const trouble = {
    compute: new Map<number, number>(),
    network: new Map(),
    links: [] as { a: number; b: number; factor: number }[],
  };
  const simulation = simulationOf({ ...shape, faults: [] });
  const { spec, lanes } = simulation;
  for (let i = 0; i < 1 + randomInt(random, 3); i++) {
    const rank = randomInt(random, spec.gpus);
    const factor = 1.2 + 2 * random();
    if (random() < 0.6 || spec.dp < 2) {
      faults.push(`gpu-slow:rank=${rank}:from=1:severity=${factor}`);
      const place = placeOfRank(simulation, rank);
      trouble.compute.set(place, Math.max(factor, trouble.compute.get(place) ?? 1));
    } else {
      const peer =
        Math.floor(rank / lanes.lanes) * lanes.lanes +
        (((rank % lanes.lanes) + spec.tp) % lanes.lanes);
      const slow = 3 * factor;
      faults.push(`network-slow:link=${rank}-${peer}:from=1:severity=${slow}`);
      trouble.links.push({
        a: placeOfRank(simulation, rank),
        b: placeOfRank(simulation, peer),
        factor: slow,
      });
    }
  }
  const job = knownJob(simulation, healthy.profiles, healthy.iterationMs);
  const faulty = simulationOf({ ...shape, faults: faults.map(parseFault) });
  const asIs = runOf(faulty, null);
  // As the loop does: how much longer a pass takes at a slow place is measured (tensor-parallel transfers do not grow).
  for (const place of trouble.compute.keys()) {
    const passMs = Math.max(
      ...ranksAt(simulation, place).map((rank) => asIs.profiles[0]!.passMs[rank]!),
    );
    trouble.compute.set(place, Math.max(1, passMs / job.passMs[Math.floor(place / spec.dp)]!));
  }
  const placed: PlacedJob = withTrouble(job.placed, trouble);
  const found = remediesOf(placed);
  const compared: Compared[] = [
    {
      strategy: "S1",
      expectedMs: found.nowMs,
      simulatedMs: median(asIs.iterationMs),
    },
  ];
  for (const strategy of ["S2", "S3"] as const) {
    const plan = found.plans.find((one) => one.strategy === strategy);
    if (!plan || plan.iterationMs > 0.99 * found.nowMs) continue;
    const slotAt = Int32Array.from(placed.slots, (_, i) => i);
    plan.topology?.placeOf.forEach((place, slot) => (slotAt[place] = slot));
    const steering = {
      microBatches: plan.microBatches?.allocation ?? placed.microBatches,
      seats: seatsOf(faulty, slotAt),
    };
    compared.push({
      strategy,
      expectedMs: plan.iterationMs,
      simulatedMs: median(runOf(faulty, steering).iterationMs),
    });
  }
  return compared;
}

function withTrouble(job: PlacedJob, { compute, links }: Trouble): PlacedJob {
  const slots = job.slots.map((slot, i) => ({ ...slot, compute: compute.get(i) ?? 1 }));
  return { ...job, slots, links };
}

function simulationOf(shape: Partial<ClusterSpec>): Simulation {
  const spec = completeSpec({ ...shape, noise: 0 });
  return simulate(spec, { mostMicroBatches: Math.min(4, spec.dp) * spec.microBatches });
}

function runOf(
  simulation: Simulation,
  steering: Steering | null,
): { iterationMs: number[]; profiles: Profile[] } {
  const iterationMs: number[] = [];
  const profiles: Profile[] = [];
  for (const times of simulation.iterations((iteration) => (iteration === 1 ? steering : null))) {
    iterationMs.push((times.endNs - times.startNs) / 1e6);
    profiles.push(profileOf(simulation, times));
  }
  return { iterationMs: iterationMs.slice(2), profiles: profiles.slice(2) };
}

export function costModelTable(first: number, count: number): string {
  const all = Array.from({ length: count }, (_, i) => compareWithSimulator(first + i)).flat();
  const rows = ["S1", "S2", "S3"].map((strategy) => {
    const errors = all
      .filter((one) => one.strategy === strategy)
      .map(({ expectedMs, simulatedMs }) => expectedMs / simulatedMs - 1);
    const size = errors.map(Math.abs).sort((a, b) => a - b);
    const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
    return `| ${strategy === "S1" ? "as things are" : strategy} | ${errors.length} | ${percent(median(errors))} | ${percent(median(size))} | ${percent(size[Math.floor(0.9 * size.length)] ?? 0)} | ${percent(size.at(-1) ?? 0)} |`;
  });
  return [
    `### The cost model against the simulator: ${count} jobs with one to three faults, seeds ${first} to ${first + count - 1}, no noise\n`,
    "| | cases | expected − simulated, median | its size, median | 90 % | worst |",
    "|---|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
