/** A scenario from a seed. What is drawn, and where the shares come from: README.md. */
import { pick, randomInt, seeded, type Random } from "../../../src/base/random.ts";
import { sample } from "../../../test/support/sample.ts";
import { simulate } from "../../../src/simulate/cluster/engine.ts";
import type { FaultSpec } from "../../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../../src/simulate/cluster/spec.ts";
import { makeTopology } from "../../../src/simulate/cluster/topology.ts";
import { TELEMETRY_FAULTS } from "../../machines/fleet/telemetry.ts";
import { drawFault, type CostRange, type DrawnFault } from "./draw-fault.ts";
import { drawShape, magnitude, SIZE_SHARES, within } from "./draw-shape.ts";
import {
  STORMS,
  type BrokenExporter,
  type EvidenceKind,
  type Family,
  type LostEvidence,
  type LoudVictim,
  type Misleading,
  type Scenario,
  type Storm,
} from "./scenario.ts";

export interface DrawOptions {
  /** One of 64 to 2,048; drawn where absent. */
  readonly gpus?: number;
  readonly family?: Family;
  readonly misleading?: Misleading;
  /** What slow-downs cost; from a tenth on where absent. */
  readonly cost?: CostRange;
}

/** README.md says where each number comes from. */
const FAMILY_SHARES: Readonly<Record<Family, number>> = {
  healthy: 16,
  "gpu-slow": 10,
  "nic-slow": 5,
  "link-slow": 3,
  "switch-slow": 2,
  "cpu-contention": 4,
  "dataloader-slow": 4,
  "gpu-error": 9,
  "gpu-memory": 3,
  "host-memory": 4,
  exception: 5,
  nan: 3,
  "process-gone": 4,
  "process-stopped": 4,
  "machine-lost": 3,
  "gpu-hang": 5,
  "cpu-stall": 4,
  "dataloader-hang": 3,
  "storage-hang": 3,
  "network-hang": 3,
  mismatch: 3,
};

const MISLEADING_SHARES: Readonly<Record<Misleading, number>> = {
  none: 35,
  "loud-victim": 13,
  "telemetry-fault": 13,
  "error-storm": 13,
  "two-faults": 13,
  "missing-evidence": 13,
};
/** Of a healthy job there is no culprit to be faint or to lack anything. */
const HEALTHY_MISLEADING: Readonly<Partial<Record<Misleading, number>>> = {
  none: 50,
  "telemetry-fault": 25,
  "error-storm": 25,
};

const SECOND: readonly Exclude<Family, "healthy">[] = [
  "gpu-slow",
  "nic-slow",
  "cpu-contention",
  "dataloader-slow",
];

export function drawScenario(seed: number, options: DrawOptions = {}): Scenario {
  const random = seeded(seed * 2_654_435_761 + 97);
  const family = options.family ?? weighted(random, FAMILY_SHARES);
  const shares = family === "healthy" ? HEALTHY_MISLEADING : MISLEADING_SHARES;
  const misleading = options.misleading ?? weighted(random, shares as Record<Misleading, number>);
  const gpus = options.gpus ?? Number(weighted(random, SIZE_SHARES));
  const spec = drawShape(seed, gpus, random);
  const from = Math.round(spec.iterations * within(random, 0.45, 0.65));
  const main =
    family === "healthy" ? null : drawFault(family, spec, from, random, [], options.cost);
  const isSlow = main?.truth.kind === "fail-slow";
  const second = misleading === "two-faults" && main ? drawSecond(spec, main, from, random) : null;
  const drawn = [main, second].filter((one) => one !== null);
  const isStopped = main !== null && !isSlow;
  // Minder samples every second, dcgm-exporter every 30; text of thousands of GPUs has to stay readable in a minute.
  const intervalS = gpus <= 64 ? 10 : gpus <= 256 ? 15 : 30;
  const faults: FaultSpec[] = drawn.map(({ fault }) => fault);
  const broken: ClusterSpec = { ...spec, faults };
  const innocent = innocentMachines(spec, drawn);
  return {
    seed,
    family: main?.family ?? family,
    misleading,
    spec: broken,
    truths: drawn.map(({ truth }) => truth),
    growth: drawn.reduce((most, { growth }) => Math.max(most, growth), 0),
    victim: misleading === "loud-victim" && main ? drawVictim(innocent, random) : null,
    exporter: misleading === "telemetry-fault" ? drawExporter(spec, innocent, random) : null,
    storm: misleading === "error-storm" ? drawStorm(spec, innocent, random) : null,
    lost: misleading === "missing-evidence" && main ? drawLost(main, random) : null,
    // Who has a hung job takes stacks; of a job that crawls or died some do, of a healthy one few (judgement).
    stacks:
      main?.truth.kind === "hang" || random() < (main === null ? 0.1 : 0.3)
        ? {
            form: pick(random, ["py-spy", "py-spy-json", "faulthandler"] as const),
            wait: pick(random, ["stream", "stream", "item", "barrier"] as const),
          }
        : null,
    isFinished: !isStopped && random() < 0.7,
    ringSize: ringSize(broken),
    // TORCH_NCCL_ENABLE_TIMING is off by default; without it durations are not there to be looked at.
    timing: isSlow || random() < 0.6,
    intervalS,
    metricGpus: gpus <= 64 ? 8 : gpus <= 256 ? 4 : 2,
    tailS: 620,
  };
}

/** PyTorch's default, or eight iterations where that is less: large jobs have large folders (six above 512 GPUs). */
function ringSize(spec: ClusterSpec): number {
  const most = Math.max(...simulate(spec).programs.map(({ count }) => count));
  return Math.min(2000, (spec.gpus > 512 ? 6 : 8) * most);
}

/** Beside a slow-down another one, from another moment on; beside a stop one that the job had long lived with. */
function drawSecond(spec: ClusterSpec, main: DrawnFault, from: number, random: Random): DrawnFault {
  const isSlow = main.truth.kind === "fail-slow";
  const start = isSlow
    ? Math.max(2, from + randomInt(random, 7) - 3)
    : Math.max(2, Math.round(from / 2));
  const not = [...machinesOf(spec, main)];
  return drawFault(isSlow ? pick(random, SECOND) : "gpu-slow", spec, start, random, not);
}

function machinesOf(spec: ClusterSpec, { truth }: DrawnFault): Set<string> {
  const topology = makeTopology(spec);
  return new Set(
    truth.ranks.slice(0, 16).map((rank) => topology.machineName(topology.machineOf(rank))),
  );
}

function innocentMachines(spec: ClusterSpec, drawn: readonly DrawnFault[]): number[] {
  const topology = makeTopology(spec);
  const guilty = new Set(drawn.flatMap((one) => [...machinesOf(spec, one)]));
  return Array.from({ length: topology.machines }, (_, machine) => machine).filter(
    (machine) => !guilty.has(topology.machineName(machine)),
  );
}

function drawVictim(innocent: readonly number[], random: Random): LoudVictim {
  return {
    machine: pick(random, innocent),
    // NCCL's proxies and the launcher's retries keep a waiting machine busy; its queues fill (judgement).
    cpu: within(random, 1.1, 2),
    pfc: magnitude(random, 3, 300),
    congestion: magnitude(random, 1.5, 20),
    isCulpritMute: random() < 0.5,
  };
}

function drawExporter(
  spec: ClusterSpec,
  innocent: readonly number[],
  random: Random,
): BrokenExporter {
  const kind = pick(random, [...TELEMETRY_FAULTS, "other-machine"] as const);
  const isOne = kind === "gpu-frozen" || kind === "gpu-silent" || kind === "blank";
  const lengthS = spec.iterations * 5;
  const [one, other] = sample(random, innocent.length, 2).map((at) => innocent[at]!);
  const fromS = random() < 0.3 ? 0 : within(random, 0, lengthS);
  return {
    kind,
    machine: other ?? one!,
    gpu: isOne ? randomInt(random, spec.gpusPerMachine) : null,
    from: one!,
    fromS,
    untilS: random() < 0.7 ? Infinity : fromS + magnitude(random, 60, 600),
  };
}

function drawStorm(spec: ClusterSpec, innocent: readonly number[], random: Random): Storm {
  const machine = pick(random, innocent);
  const onOne = Array.from(
    { length: spec.gpusPerMachine },
    (_, gpu) => machine * spec.gpusPerMachine + gpu,
  );
  const many = sample(random, spec.gpus, Math.ceil(spec.gpus * within(random, 0.2, 1)));
  const width = random();
  const from = 1 + randomInt(random, spec.iterations);
  return {
    kind: pick(random, STORMS),
    ranks: width < 0.35 ? [pick(random, onOne)] : width < 0.7 ? onOne : many,
    rate: width < 0.7 ? magnitude(random, 0.2, 6) : magnitude(random, 0.02, 0.4),
    from,
    to: random() < 0.5 ? spec.iterations : from + randomInt(random, 30),
  };
}

function drawLost({ truth }: DrawnFault, random: Random): LostEvidence {
  const kinds: EvidenceKind[] =
    truth.kind === "hang"
      ? ["operators", "metrics", "logs", "stacks"]
      : ["operators", "metrics", "logs"];
  return { kind: pick(random, kinds), ranks: truth.ranks };
}

function weighted<T extends string | number>(
  random: Random,
  shares: Readonly<Record<T, number>>,
): `${T}` {
  const all = Object.entries(shares) as [`${T}`, number][];
  let left = random() * all.reduce((sum, [, share]) => sum + share, 0);
  for (const [key, share] of all) if ((left -= share) < 0) return key;
  return all.at(-1)![0];
}
