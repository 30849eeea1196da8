/** The job that bench/live.ts plays, and the faults that it draws for it. */
import { randomInt, seeded } from "../src/base/random.ts";
import { quietIterationNs } from "../src/simulate/cluster/costs.ts";
import { parseFault } from "../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../src/simulate/cluster/spec.ts";

export interface FleetShape {
  readonly gpus: number;
  readonly agents: number;
  readonly seed: number;
}

/** So few micro-batches and layers that the engine takes an eighth of a second of CPU for 10,000 GPUs. */
export function fleetSpec({ gpus, agents, seed }: FleetShape): ClusterSpec {
  const gpusPerMachine = gpus / agents;
  const tp = Math.min(8, gpusPerMachine);
  const pp = [5, 4, 2, 1].find((stages) => gpus % (tp * stages) === 0)!;
  return completeSpec({
    gpus,
    tp,
    pp,
    dp: gpus / tp / pp,
    gpusPerMachine,
    seed,
    name: "load",
    microBatches: 4,
    layersPerStage: 2,
    hidden: 8192,
    sequence: 8192,
    sharesByFlops: true,
    iterations: Number.MAX_SAFE_INTEGER,
  });
}

export interface DrawnFault {
  readonly fault: string;
  /** How much longer it makes an iteration, without noise. */
  readonly effect: number;
}

/**
 * By how much a fault lengthens an iteration without noise. With noise the slowest of 10,000 ranks is some 8 % slower in
 * every iteration, which hides as much of the fault: 1.22 becomes 1.1, the least change that counts (Holmes §3.1).
 */
const LEAST_EFFECT = 1.22;
const TRIES = 100;

export function drawFaults(spec: ClusterSpec, count: number, seed: number): DrawnFault[] {
  const random = seeded(seed);
  const lanes = spec.gpus / spec.pp;
  const between = (least: number, most: number): string =>
    (least + (most - least) * random()).toFixed(2);
  const healthyNs = quietIterationNs(spec, []);
  const kinds: (() => string)[] = [
    () => `gpu-slow:rank=${randomInt(random, spec.gpus)}:severity=${between(1.3, 3)}`,
    () => `cpu-stall:rank=${randomInt(random, spec.gpus)}:severity=${between(2.5, 6)}`,
    () => `network-slow:rank=${randomInt(random, spec.gpus)}:severity=${between(4, 16)}`,
    () => `dataloader:rank=${randomInt(random, lanes)}:severity=${between(1.1, 2.5)}`,
    () => {
      // Neighbours in a pipeline, or in a ring of gradients.
      const isPipeline = spec.pp > 1 && random() < 0.5;
      const rank = randomInt(random, isPipeline ? spec.gpus - lanes : spec.gpus);
      const replica = Math.floor(rank / lanes) * lanes + ((rank + spec.tp) % lanes);
      const other = isPipeline ? rank + lanes : replica;
      return `network-slow:link=${rank}-${other}:severity=${between(6, isPipeline ? 60 : 16)}`;
    },
  ];
  return Array.from({ length: count }, (_, i) => {
    const kind = i < kinds.length ? i : randomInt(random, kinds.length);
    // A job may be such that one kind of fault never slows it by so much: the next kind then.
    for (let tries = 0; tries < TRIES * kinds.length; tries++) {
      const fault = kinds[(kind + Math.floor(tries / TRIES)) % kinds.length]!();
      const effect = quietIterationNs(spec, [parseFault(fault)]) / healthyNs;
      if (effect >= LEAST_EFFECT && effect <= 4) return { fault, effect };
    }
    throw new Error("no fault slows this job");
  });
}
