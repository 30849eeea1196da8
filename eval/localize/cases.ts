/** Random large jobs, healthy or with one fault, drawn from a seed. */
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { makeTopology } from "../../src/simulate/cluster/topology.ts";

/** Iterations of a case; the fault begins in the first slow one. */
export const ITERATIONS = 20;
/** What is compared: the last before the fault, and the first with it; the tracker sees all. */
export const NORMAL = [5, 6, 7, 8, 9, 10];
export const SLOW = [11, 12, 13, 14, 15, 16];

export const KINDS = ["gpu-slow", "cpu-stall", "nic", "link", "leaf"] as const;
export type Kind = (typeof KINDS)[number];

export interface Case {
  readonly seed: number;
  readonly kind: Kind | "healthy";
  readonly spec: ClusterSpec;
  readonly cause: "compute" | "network";
  /** Ranks of the device: one for a GPU, a CPU, a NIC; two for a link; all under a leaf. */
  readonly ranks: readonly number[];
  readonly name: string;
}

/** The same seed, the same job: without the fault where none is asked for. */
export function drawCase(gpus: number, kind: Case["kind"], seed: number): Case {
  const random = seeded(seed);
  const healthy = drawLayout(gpus, seed, random);
  const lanes = healthy.gpus / healthy.pp;
  const rank = randomInt(random, gpus);
  const at = (severity: number): string => `from=${SLOW[0]}:severity=${severity.toFixed(2)}`;
  const between = (low: number, high: number): number => low + (high - low) * random();
  const make = (
    text: string,
    ranks: readonly number[],
    cause: Case["cause"],
    name: string,
  ): Case => ({
    seed,
    kind,
    spec: completeSpec({ ...healthy, faults: [parseFault(text)] }),
    cause,
    ranks,
    name,
  });
  switch (kind) {
    case "gpu-slow":
      return make(
        `gpu-slow:rank=${rank}:${at(between(1.5, 4))}`,
        [rank],
        "compute",
        `rank ${rank}`,
      );
    case "cpu-stall":
      return make(
        `cpu-stall:rank=${rank}:${at(between(3, 12))}`,
        [rank],
        "compute",
        `rank ${rank}`,
      );
    case "nic":
      return make(
        `network-slow:rank=${rank}:${at(between(3, 15))}`,
        [rank],
        "network",
        `nic of rank ${rank}`,
      );
    case "link": {
      // Neighbours in a pipeline: which link of a ring is slow, no operator of the ring tells.
      const a = randomInt(random, gpus - lanes);
      const b = a + lanes;
      return make(
        `network-slow:link=${a}-${b}:${at(between(8, 40))}`,
        [a, b],
        "network",
        `link ${a}–${b}`,
      );
    }
    case "leaf": {
      const topology = makeTopology(healthy);
      const leaf = topology.leafOf(rank);
      const under = Array.from({ length: gpus }, (_, r) => r).filter(
        (r) => topology.leafOf(r) === leaf,
      );
      return make(
        `network-slow:switch=leaf${leaf}:${at(between(3, 10))}`,
        under,
        "network",
        `leaf ${leaf}`,
      );
    }
    case "healthy":
      return { seed, kind, spec: healthy, cause: "compute", ranks: [], name: "" };
  }
}

function drawLayout(gpus: number, seed: number, random: Random): ClusterSpec {
  for (;;) {
    const tp = pick(random, [4, 8]);
    const pp = pick(random, [4, 8, 16]);
    const dp = gpus / tp / pp;
    const ep = pick(random, [1, 1, 4, 8]);
    if (!Number.isInteger(dp) || dp % ep !== 0) continue;
    return completeSpec({
      gpus,
      tp,
      pp,
      dp,
      ep,
      microBatches: pick(random, [6, 8]),
      layersPerStage: pick(random, [1, 2, 2]),
      hidden: 8192,
      sequence: pick(random, [4096, 8192]),
      overlapGradients: random() < 0.7,
      iterations: ITERATIONS,
      seed,
      noise: 1,
    });
  }
}
