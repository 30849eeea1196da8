/**
 * Machines, NICs and switches. One NIC a GPU; NIC i of every machine of a pod hangs on the pod's leaf of
 * rail i (rail-optimised); leaves meet in the spines, chosen by a hash of the flow (ECMP).
 */
import type { ClusterSpec } from "./spec.ts";
import { hash } from "./noise.ts";

/** Where ranks sit: functions of a rank say what holds for the GPU that it sits on. */
export interface Topology {
  readonly machines: number;
  readonly rails: number;
  readonly leaves: number;
  readonly spines: number;
  /** The GPU that a rank sits on, by the rank that it has in the unmoved layout; and the rank on a GPU. */
  seatOf(rank: number): number;
  rankAt(seat: number): number;
  machineOf(rank: number): number;
  gpuOf(rank: number): number;
  leafOf(rank: number): number;
  /** The spine between two leaves for a flow; -1 where one leaf serves both. */
  spineOf(leafA: number, leafB: number, flow: number): number;
  machineName(machine: number): string;
  nicName(rank: number): string;
  leafName(leaf: number): string;
}

export function makeTopology(spec: ClusterSpec): Topology {
  const { gpus, gpusPerMachine: rails, machinesPerLeaf, spines } = spec;
  const machines = Math.ceil(gpus / rails);
  const pods = Math.ceil(machines / machinesPerLeaf);
  const width = Math.max(3, String(machines - 1).length);
  const machineOf = (rank: number): number => Math.floor(rank / rails);
  const gpuOf = (rank: number): number => rank % rails;
  const machineName = (machine: number): string => `node${String(machine).padStart(width, "0")}`;
  return {
    machines,
    rails,
    leaves: pods * rails,
    spines,
    seatOf: (rank) => rank,
    rankAt: (seat) => seat,
    machineOf,
    gpuOf,
    leafOf: (rank) => Math.floor(machineOf(rank) / machinesPerLeaf) * rails + gpuOf(rank),
    spineOf: (a, b, flow) => (a === b ? -1 : hash(flow, a, b, 17) % spines),
    machineName,
    nicName: (rank) => `${machineName(machineOf(rank))}/mlx5_${gpuOf(rank)}`,
    leafName: (leaf) => `leaf${leaf}`,
  };
}

/** The same machines with ranks that have changed places (Greyhound §5.2, S3); `seats` by rank, a permutation. */
export function seatedTopology(unmoved: Topology, seats: Int32Array): Topology {
  const rankAt = new Int32Array(seats.length);
  seats.forEach((seat, rank) => (rankAt[seat] = rank));
  return {
    ...unmoved,
    seatOf: (rank) => seats[rank]!,
    rankAt: (seat) => rankAt[seat]!,
    machineOf: (rank) => unmoved.machineOf(seats[rank]!),
    gpuOf: (rank) => unmoved.gpuOf(seats[rank]!),
    leafOf: (rank) => unmoved.leafOf(seats[rank]!),
    nicName: (rank) => unmoved.nicName(seats[rank]!),
  };
}
