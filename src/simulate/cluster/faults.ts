/**
 * What the faults do to each device in each iteration. Everything is a factor on a time, 1 for a
 * healthy device and Infinity for one that never ends; that is how a hang comes out of the same
 * arithmetic as a slow-down.
 */
import { ENDING_CAUSES, type FaultSpec } from "./fault-spec.ts";
import { hostSites, type HostSite } from "./host-sites.ts";
import { linkEnds } from "./links.ts";
import { hash, STREAM, uniform } from "./noise.ts";
import { slowParts, type PartShares } from "./parts.ts";
import type { RankWork } from "./rank-work.ts";
import type { ClusterSpec } from "./spec.ts";
import type { Topology } from "./topology.ts";

const GPU_SPREAD = 0.015;
const CPU_SPREAD = 0.1;
const NIC_SPREAD = 0.04;

/** Never: an operator index beyond every program. */
export const NEVER = 0x7fffffff;

export interface DeviceState {
  /** By rank: factor on kernels, on the CPU's work, on its NIC and on NVLink. */
  readonly gpu: Float64Array;
  readonly cpu: Float64Array;
  readonly nic: Float64Array;
  readonly nvlink: Float64Array;
  readonly leaf: Float64Array;
  readonly spine: Float64Array;
  /** Factor on what runs between two ranks, key from · gpus + to (both directions are set). */
  readonly pair: Map<number, number>;
  /** Extra CPU time before each operator (garbage collection), and before each fetch of a batch. */
  readonly pauseNs: Float64Array;
  /** Extra CPU time before each operator that is nobody's pause: contention, launching anew. */
  readonly stallNs: Float64Array;
  readonly loadNs: Float64Array;
  /** 1 where the CPU waits for the GPU before every operator. */
  readonly sync: Uint8Array;
  /** From this operator of the iteration on, the rank's GPU (CPU) does nothing more; NEVER otherwise. */
  readonly gpuEnds: Int32Array;
  readonly cpuEnds: Int32Array;
  /** What lengthens single parts of a layer; null where nothing does. */
  readonly parts: PartShares | null;
  /** What CPUs do before certain operators only. */
  readonly sites: readonly HostSite[];
}

export function healthyDevices(spec: ClusterSpec, topology: Topology): DeviceState {
  const ones = (n: number): Float64Array => new Float64Array(n).fill(1);
  const { gpus } = spec;
  return {
    gpu: ones(gpus),
    cpu: ones(gpus),
    nic: ones(gpus),
    nvlink: ones(gpus),
    leaf: ones(topology.leaves),
    spine: ones(topology.spines),
    pair: new Map(),
    pauseNs: new Float64Array(gpus),
    stallNs: new Float64Array(gpus),
    loadNs: new Float64Array(gpus),
    sync: new Uint8Array(gpus),
    gpuEnds: new Int32Array(gpus).fill(NEVER),
    cpuEnds: new Int32Array(gpus).fill(NEVER),
    parts: null,
    sites: [],
  };
}

/** Healthy devices as this run found them: no two machines are quite alike. */
export function placedDevices(spec: ClusterSpec, topology: Topology): DeviceState {
  return place(spec, topology, healthyDevices(spec, topology));
}

/** How strong a fault is in an iteration (from 1): 1 for not at all. */
export function severityAt(fault: FaultSpec, iteration: number, seed: number): number {
  if (iteration < fault.from || iteration > fault.to) return 1;
  const since = iteration - fault.from;
  switch (fault.shape) {
    case "steady":
      return fault.severity;
    case "spike":
      // Holmes §3.1.1 counts 39 spikes in 1,000 iterations; rehearsals need more, one in eight.
      return since === 0 || uniform(seed ^ STREAM.spike, iteration, 0, 0) < 1 / 8
        ? fault.severity
        : 1;
    case "fluctuation":
      // Holmes appendix B: a period of 6.94 iterations.
      return since % 7 < 2 ? fault.severity : 1;
    case "ramp": {
      const length = Math.max(1, Math.min(40, fault.to - fault.from));
      return 1 + (fault.severity - 1) * Math.min(1, (since + 1) / length);
    }
  }
}

/**
 * The state of all devices in an iteration, by rank; null where no fault acts, so that the healthy one serves. Faults
 * stick to GPUs and machines: `topology` tells which ranks sit there. `work` is null for whoever has no use for what
 * happens before single operators.
 */
export function devicesAt(
  spec: ClusterSpec,
  topology: Topology,
  iteration: number,
  work: RankWork | null = null,
): DeviceState | null {
  const acting = spec.faults
    .map((fault) => ({ fault, severity: severityAt(fault, iteration, spec.seed) }))
    .filter(({ fault, severity }) => severity > 1 || isEnding(fault, iteration));
  if (acting.length === 0) return null;
  const devices = healthyDevices(spec, topology);
  for (const { fault, severity } of acting) {
    if (isEnding(fault, iteration)) end(spec, topology, devices, fault, work);
    else slow(spec, topology, devices, fault, severity, (rank) => work?.meanWorkNs(rank) ?? 0);
  }
  const slowing = acting
    .filter(({ fault }) => !isEnding(fault, iteration))
    .map(({ fault, severity }) => ({
      fault,
      severity,
      ranks: new Set(faultRanks(spec, topology, fault)),
    }));
  return place(spec, topology, {
    ...devices,
    parts: slowParts(spec, slowing),
    sites: hostSites(spec, slowing, work, iteration),
  });
}

/** Whether the fault ends the job in this iteration: hangs and crashes do, and a CPU stalled for ever. */
export function isEnding(fault: FaultSpec, iteration: number): boolean {
  const endless = fault.cause === "cpu-stall" && fault.severity === Infinity;
  // A program that checks its packages in every layer is slow, not broken.
  const goesOn = fault.how !== "";
  return iteration === fault.from && !goesOn && (endless || ENDING_CAUSES.includes(fault.cause));
}

function end(
  spec: ClusterSpec,
  topology: Topology,
  devices: DeviceState,
  fault: FaultSpec,
  work: RankWork | null,
): void {
  if (fault.cause === "network-hang") {
    slow(spec, topology, devices, { ...fault, cause: "network-slow" }, Infinity, () => 0);
    return;
  }
  for (const rank of faultRanks(spec, topology, fault)) {
    const ops = work?.counts[rank] ?? 1;
    // Somewhere in the middle half of the iteration.
    const place =
      Math.floor(ops / 4) +
      (hash(spec.seed ^ STREAM.hang, rank, fault.from, 0) % Math.max(1, Math.floor(ops / 2)));
    const at = work?.opAt(rank, place) ?? place;
    if (fault.cause === "gpu-hang") devices.gpuEnds[rank] = at;
    else devices.cpuEnds[rank] = at;
  }
}

function slow(
  spec: ClusterSpec,
  topology: Topology,
  devices: DeviceState,
  fault: FaultSpec,
  severity: number,
  /** Mean time of the kernels before one operator of a rank. */
  meanWorkNs: (rank: number) => number,
): void {
  const raise = (column: Float64Array, index: number): void => {
    column[index] = Math.max(column[index]!, severity);
  };
  if (fault.cause === "network-slow") {
    if (fault.switch?.startsWith("leaf")) raise(devices.leaf, Number(fault.switch.slice(4)));
    else if (fault.switch) raise(devices.spine, Number(fault.switch.slice(5)));
    else if (fault.link) slowLink(spec, topology, devices, fault.link, severity);
    else for (const rank of faultRanks(spec, topology, fault)) raise(devices.nic, rank);
    return;
  }
  // As a string: all causes without a case of their own slow kernels down.
  const cause: string = fault.cause;
  for (const rank of faultRanks(spec, topology, fault)) {
    switch (cause) {
      case "memory-management":
      case "user-program":
      case "gemm-layout":
        // Single operators and single parts of a layer: host-sites.ts, parts.ts.
        break;
      case "cpu-stall":
        // CPUs run far ahead of their GPUs: one that is contended matters once it needs longer for an
        // operator than the GPU does, and that is what the factor is on.
        raise(devices.cpu, rank);
        devices.stallNs[rank] = severity * meanWorkNs(rank);
        break;
      case "dataloader":
        devices.loadNs[rank] = 5e7 * severity;
        break;
      case "garbage-collection":
        if (fault.how === "") devices.pauseNs[rank] = 1e6 * severity;
        break;
      case "synchronization":
        // After each wait the GPU idles until the next kernels are launched anew.
        if (fault.how !== "") break;
        devices.sync[rank] = 1;
        devices.stallNs[rank] = 1e5 * severity;
        break;
      case "minority-kernels":
        if (fault.how === "") raise(devices.gpu, rank);
        break;
      default:
        raise(devices.gpu, rank);
        if (fault.signature === "nvlink") raise(devices.nvlink, rank);
        if (fault.signature === "pcie" || fault.signature === "nic-drop") raise(devices.nic, rank);
    }
  }
}

function slowLink(
  spec: ClusterSpec,
  topology: Topology,
  devices: DeviceState,
  link: readonly [string, string],
  severity: number,
): void {
  const ends = linkEnds(topology, spec.gpus, link);
  if (ends === null) {
    // A machine and a leaf: the machine's NIC there.
    for (let rank = 0; rank < spec.gpus; rank++) {
      const names = [
        topology.machineName(topology.machineOf(rank)),
        topology.leafName(topology.leafOf(rank)),
      ];
      if (link.every((end) => names.includes(end)))
        devices.nic[rank] = Math.max(devices.nic[rank]!, severity);
    }
    return;
  }
  const raise = (from: number, to: number): void => {
    const key = from * spec.gpus + to;
    devices.pair.set(key, Math.max(devices.pair.get(key) ?? 1, severity));
  };
  for (const a of ends[0]) {
    for (const b of ends[1]) {
      raise(a, b);
      raise(b, a);
    }
  }
}

/**
 * Ranks that sit where a fault is, on the GPUs or the machine that it names; all of them where it names none (a code
 * regression). With the unmoved topology these are the ranks that the fault names.
 */
export function faultRanks(spec: ClusterSpec, topology: Topology, fault: FaultSpec): number[] {
  if (fault.ranks.length > 0) return fault.ranks.map((seat) => topology.rankAt(seat));
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  if (fault.machine === null) {
    const lanes = spec.gpus / spec.pp;
    return fault.cause === "dataloader" ? all.slice(0, lanes) : all;
  }
  return all.filter((rank) => topology.machineName(topology.machineOf(rank)) === fault.machine);
}

/**
 * What one run of a job has and the next has not: its machines. Comparisons of runs must live with it.
 * Assumed, for want of data of our own: GPUs of one model differ by ±1.5 % in the clock that they hold
 * under load, CPUs by ±10 % (governor, NUMA, neighbours), NICs by up to 4 % (cables, hash collisions of
 * a fabric's flows).
 * Lengthens the devices' times in place.
 */
function place(spec: ClusterSpec, topology: Topology, devices: DeviceState): DeviceState {
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
