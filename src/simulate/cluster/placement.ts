/**
 * What one run of a job has and the next has not: its machines. Whoever compares runs must live with it.
 * Assumed, for want of data of our own: GPUs of one model differ by ±1.5 % in the clock that they hold
 * under load, CPUs by ±10 % (governor, NUMA, neighbours), NICs by up to 4 % (cables, hash collisions of
 * a fabric's flows).
 */
import type { DeviceState } from "./faults.ts";
import { STREAM, uniform } from "./noise.ts";
import type { ClusterSpec } from "./spec.ts";
import type { Topology } from "./topology.ts";

const GPU_SPREAD = 0.015;
const CPU_SPREAD = 0.1;
const NIC_SPREAD = 0.04;

/** Lengthens the devices' times in place. */
export function place(spec: ClusterSpec, topology: Topology, devices: DeviceState): DeviceState {
  if (spec.placement === 0) return devices;
  const seed = spec.seed ^ STREAM.placement;
  const draw = (index: number, what: number): number => uniform(seed, index, what, 0);
  for (let rank = 0; rank < spec.gpus; rank++) {
    const machine = topology.machineOf(rank);
    const seat = topology.seatOf(rank);
    devices.gpu[rank]! *= 1 + spec.placement * GPU_SPREAD * (2 * draw(seat, 0) - 1);
    devices.cpu[rank]! *= 1 + spec.placement * CPU_SPREAD * (2 * draw(machine, 1) - 1);
    devices.nic[rank]! *= 1 + spec.placement * NIC_SPREAD * draw(seat, 2);
  }
  return devices;
}
