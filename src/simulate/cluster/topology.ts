/**
 * Machines, NICs and switches. One NIC a GPU; NIC i of every machine of a pod hangs on the pod's leaf of
 * rail i (rail-optimised); leaves meet in the spines, chosen by a hash of the flow (ECMP).
 */
import type { ClusterSpec } from "./spec.ts";
import { hash } from "./noise.ts";

export interface Topology {
  readonly machines: number;
  readonly rails: number;
  readonly leaves: number;
  readonly spines: number;
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
    machineOf,
    gpuOf,
    leafOf: (rank) => Math.floor(machineOf(rank) / machinesPerLeaf) * rails + gpuOf(rank),
    spineOf: (a, b, flow) => (a === b ? -1 : hash(flow, a, b, 17) % spines),
    machineName,
    nicName: (rank) => `${machineName(machineOf(rank))}/mlx5_${gpuOf(rank)}`,
    leafName: (leaf) => `leaf${leaf}`,
  };
}
