/** A simulated job as the mitigator sees it: what its parts took while it was healthy, and what they take now. */
import { median } from "../../src/maths/robust.ts";
import { evenCounts } from "./mitigator.ts";
import { identity, iterationMs } from "../../src/mitigate/topology/cost-model.ts";
import type { PlacedJob } from "../../src/model/mitigation.ts";
import type { Simulation } from "../../src/simulate/cluster/times.ts";
import type { Profile } from "./profile.ts";

/** Times of healthy iterations, and the job out of them. */
export interface KnownJob {
  readonly placed: PlacedJob;
  readonly healthyMs: number;
  /** By stage: one micro-batch's pass. */
  readonly passMs: readonly number[];
  readonly exchangeMs: Float64Array;
}

/** Ranks of a place, in the layout of lanes. */
export function ranksAt({ spec, lanes }: Simulation, place: number): number[] {
  const size = spec.tp * spec.cp;
  const stage = Math.floor(place / spec.dp);
  const first = stage * lanes.lanes + (place % spec.dp) * size;
  return Array.from({ length: size }, (_, i) => first + i);
}

export function placeOfRank({ spec, lanes }: Simulation, rank: number): number {
  const size = spec.tp * spec.cp;
  return Math.floor(rank / lanes.lanes) * spec.dp + Math.floor((rank % lanes.lanes) / size);
}

export function knownJob(
  simulation: Simulation,
  profiles: readonly Profile[],
  iterationTimesMs: readonly number[],
): KnownJob {
  const { spec, lanes, topology } = simulation;
  const places = spec.dp * spec.pp;
  const slots = Array.from({ length: places }, (_, place) => {
    const [first] = ranksAt(simulation, place);
    const machine = topology.machineName(topology.machineOf(first!));
    const wholes = spec.gpusPerMachine === spec.tp * spec.cp;
    const name = wholes ? machine : `${machine}/gpu${topology.gpuOf(first!)}`;
    return { name, machine, compute: 1, network: 1 };
  });
  const passMs = Array.from({ length: spec.pp }, (_, stage) =>
    median(
      profiles.flatMap((profile) => [
        ...profile.passMs.subarray(stage * lanes.lanes, (stage + 1) * lanes.lanes),
      ]),
    ),
  );
  const exchangeMs = profiles[0]!.exchangeMs.map((_, g) =>
    median(profiles.map((p) => p.exchangeMs[g]!)),
  );
  const gradientMs = Array.from({ length: spec.pp }, (_, stage) =>
    Math.max(...exchangeMs.subarray(stage * lanes.dp.count, (stage + 1) * lanes.dp.count)),
  );
  const activations = profiles.flatMap((p) => Array.from(p.activationMs.filter((ms) => ms > 0)));
  const healthyMs = median(iterationTimesMs);
  const placed: PlacedJob = {
    replicas: spec.dp,
    stages: spec.pp,
    microBatches: evenCounts(spec.dp, spec.dp * spec.microBatches),
    stageMs: passMs,
    gradientMs,
    activationMs: activations.length > 0 ? median(activations) : 0,
    restMs: 0,
    slots,
    links: [],
  };
  // What the model does not know: hosts between iterations, and what of the exchange hides behind compute.
  const restMs = healthyMs - iterationMs(placed, identity(places));
  return { placed: { ...placed, restMs }, healthyMs, passMs, exchangeMs };
}

/** By rank: the GPU that it sits on. */
export function seatsOf(simulation: Simulation, slotAt: Int32Array): Int32Array {
  const seats = new Int32Array(simulation.spec.gpus);
  slotAt.forEach((slot, place) => {
    const gpus = ranksAt(simulation, slot);
    ranksAt(simulation, place).forEach((rank, i) => (seats[rank] = gpus[i]!));
  });
  return seats;
}
