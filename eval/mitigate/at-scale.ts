/**
 * Greyhound §7.5 and figure 20: GPT2-40B on 256 GPUs (8 TP, 16 DP, 2 PP), twelve fail-slows (2 congestions, 3 weak, 5
 * medium and 2 severe slow-downs of GPUs), some of them at the same time, once without and once with mitigation.
 * Which machines, and in which order, is drawn by the seed. The paper tells neither severities nor lengths; ours are
 * chosen so that a run without mitigation loses half of its throughput, as theirs did.
 */
import { pick, randomInt, seeded } from "../../src/base/random.ts";
import { median } from "../../src/maths/robust.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import type { FaultSpec } from "../../src/simulate/cluster/fault-spec.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import { closedLoop, type Belief, type LoopResult } from "./closed-loop.ts";
import { placeOfRank, ranksAt } from "./known-job.ts";

const ITERATIONS = 1500;
const SEVERITY = { weak: 2, medium: 2.6, severe: 4 } as const;
/** Table 6. */
const EVENTS = { weak: 3, medium: 5, severe: 2 } as const;
/** As §7.5 and §7.4 have them: a pause under a minute, and half an hour for a restart. */
const OVERHEADS = { microBatchesMs: 1_000, topologyMs: 50_000, restartMs: 30 * 60_000 };

export interface Scale {
  readonly shape: Partial<ClusterSpec>;
  readonly iterations: number;
}

/** Four layers as large as twelve: the same floating-point work and gradients, fewer operators to simulate. */
export const PAPER: Scale = {
  shape: { gpus: 256, tp: 8, pp: 2, dp: 16, microBatches: 16, layersPerStage: 4, hidden: 12_288 },
  iterations: ITERATIONS,
};
export const SMALL: Scale = {
  shape: {
    gpus: 64,
    tp: 4,
    pp: 2,
    dp: 8,
    microBatches: 16,
    layersPerStage: 2,
    hidden: 16_384,
    gpusPerMachine: 4,
  },
  iterations: 750,
};

/** Twelve events in ten slots of time: the two congestions meet slow-downs of GPUs (compound, §3.4). */
export function twelveEvents({ shape, iterations }: Scale, seed: number): string[] {
  const random = seeded(seed);
  const span = iterations / 10;
  const kinds = (["weak", "medium", "severe"] as const).flatMap((kind) =>
    Array.from({ length: EVENTS[kind] }, () => kind),
  );
  for (let i = kinds.length - 1; i > 0; i--) {
    const j = randomInt(random, i + 1);
    [kinds[i], kinds[j]] = [kinds[j]!, kinds[i]!];
  }
  const faults = kinds.map((kind, i) => {
    const from = Math.round(i * span + 20 + 0.1 * span * random());
    const to = Math.round((i + 0.9) * span);
    return `gpu-slow:rank=${randomInt(random, shape.gpus!)}:from=${from}:to=${to}:severity=${SEVERITY[kind]}`;
  });
  const machines = shape.gpus! / shape.tp!;
  for (const slot of [3, 7]) {
    // Neighbours of one stage share a data-parallel group.
    const stage = randomInt(random, shape.pp!);
    const first = stage * (machines / shape.pp!) + randomInt(random, machines / shape.pp! - 1);
    const from = Math.round((slot + 0.3) * span);
    const to = Math.round((slot + pick(random, [1.6, 1.9])) * span);
    const name = (machine: number): string => `node${String(machine).padStart(3, "0")}`;
    faults.push(
      `network-slow:link=${name(first)}-${name(first + 1)}:from=${from}:to=${to}:severity=20`,
    );
  }
  return faults;
}

/** Whether a belief within the event's time holds what is really slow. */
function isNamed(
  { ranks, link, from, to }: FaultSpec,
  belief: Belief,
  simulation: Simulation,
): boolean {
  if (belief.iteration < from || belief.iteration > to) return false;
  if (!link) return ranks.every((rank) => belief.slow.includes(placeOfRank(simulation, rank)));
  const machineOf = (slot: number): string => {
    const { topology } = simulation;
    return topology.machineName(topology.machineOf(ranksAt(simulation, slot)[0]!));
  };
  return belief.links.some((pair) => pair.map(machineOf).sort().join() === [...link].sort().join());
}

export async function figure20(
  scale: Scale,
  seeds: readonly number[],
  log: (line: string) => void,
): Promise<string> {
  const lines = [
    `### Figure 20: ${scale.shape.gpus} GPUs (${scale.shape.tp} TP, ${scale.shape.dp} DP, ${scale.shape.pp} PP), twelve events, ${scale.iterations} iterations\n`,
    "| seed | healthy, iterations a minute | without | with | gain | S2 | S3 | S4 | events named right | after, iterations |",
    "|---|---|---|---|---|---|---|---|---|---|",
  ];
  const gains: number[] = [];
  for (const seed of seeds) {
    const faults = twelveEvents(scale, seed);
    const spec = completeSpec({
      ...scale.shape,
      iterations: scale.iterations,
      seed,
      faults: faults.map(parseFault),
    });
    const simulation = simulate(spec);
    const plain = await closedLoop(spec, { isMitigating: false, overheads: OVERHEADS });
    const treated = await closedLoop(spec, { isMitigating: true, overheads: OVERHEADS, log });
    const perMinute = ({ iterationMs, totalMs }: LoopResult): number =>
      (iterationMs.length * 60_000) / totalMs;
    const [without, withIt] = [perMinute(plain), perMinute(treated)];
    gains.push(withIt / without);
    const count = (strategy: string): number =>
      treated.steps.filter(({ order }) => order.strategy === strategy).length;
    const waits = spec.faults.flatMap((fault) => {
      const seen = treated.beliefs.find((belief) => isNamed(fault, belief, simulation));
      return seen ? [seen.iteration - fault.from + 1] : [];
    });
    lines.push(
      `| ${[
        seed,
        (60_000 / plain.healthyMs).toFixed(1),
        without.toFixed(1),
        withIt.toFixed(1),
        `**${(withIt / without).toFixed(2)}×**`,
        count("S2"),
        count("S3"),
        count("S4"),
        `${waits.length} of ${faults.length}`,
        waits.length > 0 ? `median ${median(waits)}` : "–",
      ].join(" | ")} |`,
    );
  }
  lines.push(
    "| paper | 37.4 | 18.9 | 29.8 | 1.58× | | 2 | 0 | 12 of 12 | 10.6 s |",
    "",
    `Gain over ${seeds.length} seeds: median ${median(gains).toFixed(2)}×, ${Math.min(...gains).toFixed(2)} to ${Math.max(...gains).toFixed(2)}. Counts of S2 include those that give micro-batches back. Overheads: S2 1 s, S3 50 s, tests of links 5 s, S4 30 min; each is taken only when as much was lost.`,
  );
  return lines.join("\n");
}
