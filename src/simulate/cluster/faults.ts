/**
 * What the faults do to each device in each iteration. Everything is a factor on a time, 1 for a
 * healthy device and Infinity for one that never ends; that is how a hang comes out of the same
 * arithmetic as a slow-down.
 */
import { UserError } from "../../base/errors.ts";
import { ENDING_CAUSES, type FaultSpec } from "./fault-spec.ts";
import { hostSites, type HostSite } from "./host-sites.ts";
import { hash, STREAM, uniform } from "./noise.ts";
import { slowParts, type PartShares } from "./parts.ts";
import { place } from "./placement.ts";
import type { StageProgram } from "./program.ts";
import type { ClusterSpec } from "./spec.ts";
import type { Topology } from "./topology.ts";

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
  /** Factor on the transfers between two ranks, key from · gpus + to (both directions are set). */
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

/** The state of all devices in an iteration; null where no fault acts, so that the healthy one serves. */
export function devicesAt(
  spec: ClusterSpec,
  topology: Topology,
  iteration: number,
  opsOf: (rank: number) => number,
  /** GPU time of a rank's kernels in an iteration. */
  workNsOf: (rank: number) => number,
  /** Null for whoever has no use for what happens before single operators. */
  programOf: ((rank: number) => StageProgram) | null = null,
): DeviceState | null {
  const acting = spec.faults
    .map((fault) => ({ fault, severity: severityAt(fault, iteration, spec.seed) }))
    .filter(({ fault, severity }) => severity > 1 || isEnding(fault, iteration));
  if (acting.length === 0) return null;
  const devices = healthyDevices(spec, topology);
  for (const { fault, severity } of acting) {
    if (isEnding(fault, iteration)) end(spec, topology, devices, fault, opsOf);
    else slow(spec, topology, devices, fault, severity, (rank) => workNsOf(rank) / opsOf(rank));
  }
  const slowing = acting
    .filter(({ fault }) => !isEnding(fault, iteration))
    .map(({ fault, severity }) => ({
      fault,
      severity,
      ranks: new Set(faultRanks(spec, topology, fault)),
    }));
  const programs = programOf === null ? null : { of: programOf, iteration };
  return place(spec, topology, {
    ...devices,
    parts: slowParts(spec, slowing),
    sites: hostSites(spec, slowing, programs),
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
  opsOf: (rank: number) => number,
): void {
  if (fault.cause === "network-hang") {
    slow(spec, topology, devices, { ...fault, cause: "network-slow" }, Infinity, () => 0);
    return;
  }
  for (const rank of faultRanks(spec, topology, fault)) {
    const ops = opsOf(rank);
    // Somewhere in the middle half of the iteration.
    const at =
      Math.floor(ops / 4) +
      (hash(spec.seed ^ STREAM.hang, rank, fault.from, 0) % Math.max(1, Math.floor(ops / 2)));
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
  [a, b]: readonly [string, string],
  severity: number,
): void {
  if (/^\d+$/.test(a) && /^\d+$/.test(b)) {
    devices.pair.set(Number(a) * spec.gpus + Number(b), severity);
    devices.pair.set(Number(b) * spec.gpus + Number(a), severity);
    return;
  }
  for (let rank = 0; rank < spec.gpus; rank++) {
    const ends = [
      topology.machineName(topology.machineOf(rank)),
      topology.leafName(topology.leafOf(rank)),
    ];
    if (ends.includes(a) && ends.includes(b))
      devices.nic[rank] = Math.max(devices.nic[rank]!, severity);
  }
}

/** Ranks that a fault names, by rank or by machine; all of them where it names none (a code regression). */
export function faultRanks(spec: ClusterSpec, topology: Topology, fault: FaultSpec): number[] {
  if (fault.ranks.length > 0) return [...fault.ranks];
  const all = Array.from({ length: spec.gpus }, (_, rank) => rank);
  if (fault.machine === null) {
    const lanes = spec.gpus / spec.pp;
    return fault.cause === "dataloader" ? all.slice(0, lanes) : all;
  }
  return all.filter((rank) => topology.machineName(topology.machineOf(rank)) === fault.machine);
}

/** Refuses faults that name what the job does not have. */
export function checkFaults(spec: ClusterSpec, topology: Topology): void {
  for (const fault of spec.faults) {
    for (const rank of fault.ranks) {
      if (rank >= spec.gpus) {
        throw new UserError(
          `--fault ${fault.cause}: rank ${rank} is out of range`,
          `allowed: 0 to ${spec.gpus - 1}`,
          2,
        );
      }
    }
    checkTarget(fault);
    if (fault.machine !== null && faultRanks(spec, topology, fault).length === 0) {
      const last = topology.machineName(topology.machines - 1);
      throw new UserError(
        `--fault ${fault.cause}: there is no machine ${fault.machine}`,
        `allowed: ${topology.machineName(0)} to ${last}`,
        2,
      );
    }
    if (fault.switch !== null && !isSwitch(topology, fault.switch)) {
      const hint = `allowed: leaf0 to leaf${topology.leaves - 1}, spine0 to spine${topology.spines - 1}`;
      throw new UserError(`--fault ${fault.cause}: there is no switch ${fault.switch}`, hint, 2);
    }
    if (fault.link !== null) checkLink(spec, topology, fault, fault.link);
    checkItCanAct(spec, topology, fault);
    const needsPlace = ["gpu-hang", "process-gone", "process-stopped", "gpu-error", "gpu-memory"];
    if (needsPlace.includes(fault.cause) && fault.ranks.length === 0 && fault.machine === null) {
      throw new UserError(
        `--fault ${fault.cause} needs a rank or a machine`,
        `for example --fault ${fault.cause}:rank=0:from=5`,
        2,
      );
    }
    if (fault.from > spec.iterations) {
      throw new UserError(
        `--fault ${fault.cause}: it begins at iteration ${fault.from}, after the job's last`,
        `allowed: 1 to ${spec.iterations}`,
        2,
      );
    }
  }
}

/** A rehearsal of a fault that touches nothing would rehearse nothing. */
function checkItCanAct(spec: ClusterSpec, topology: Topology, fault: FaultSpec): void {
  const isNetwork = fault.cause === "network-slow" || fault.cause === "network-hang";
  const isPair = fault.link?.every((end) => /^\d+$/.test(end)) === true;
  if (isNetwork && !isPair && topology.machines === 1) {
    throw new UserError(
      `--fault ${fault.cause}: all ranks sit in one machine, nothing passes a NIC or a switch`,
      `take more than ${spec.gpusPerMachine} GPUs, or a link between two ranks (link=0-1)`,
      2,
    );
  }
  const loading = spec.gpus / spec.pp;
  const ranks = faultRanks(spec, topology, fault);
  if (fault.cause === "dataloader" && ranks.every((rank) => rank >= loading)) {
    throw new UserError(
      `--fault dataloader: only the first pipeline stage loads data`,
      `allowed: ranks 0 to ${loading - 1}`,
      2,
    );
  }
}

/** Only the network has links and switches, and a fault has one place. */
function checkTarget(fault: FaultSpec): void {
  const places = [
    fault.ranks.length > 0,
    fault.machine !== null,
    fault.link !== null,
    fault.switch !== null,
  ];
  if (places.filter(Boolean).length > 1) {
    throw new UserError(
      `--fault ${fault.cause} names more than one place`,
      "give one of rank, machine, link, switch; repeat --fault for more",
      2,
    );
  }
  if (!fault.cause.startsWith("network-") && (fault.link !== null || fault.switch !== null)) {
    throw new UserError(
      `--fault ${fault.cause} has no link or switch`,
      "give a rank or a machine; links and switches go with network-slow and network-hang",
      2,
    );
  }
  if (fault.severity === Infinity && fault.cause !== "cpu-stall") {
    throw new UserError(
      `--fault ${fault.cause}: severity=inf goes with cpu-stall only`,
      "use gpu-hang or network-hang for a GPU or a network that stops",
      2,
    );
  }
}

function isSwitch(topology: Topology, name: string): boolean {
  const match = /^(leaf|spine)(\d+)$/.exec(name);
  return (
    match !== null && Number(match[2]) < (match[1] === "leaf" ? topology.leaves : topology.spines)
  );
}

function checkLink(
  spec: ClusterSpec,
  topology: Topology,
  fault: FaultSpec,
  ends: readonly [string, string],
): void {
  const hint = `ranks 0 to ${spec.gpus - 1}, or a machine and its leaf (${topology.machineName(0)}-leaf0)`;
  const numeric = ends.every((end) => /^\d+$/.test(end));
  const known = numeric
    ? ends.every((end) => Number(end) < spec.gpus) && ends[0] !== ends[1]
    : Array.from({ length: spec.gpus }, (_, rank) => rank).some((rank) => {
        const here = [
          topology.machineName(topology.machineOf(rank)),
          topology.leafName(topology.leafOf(rank)),
        ];
        return here.includes(ends[0]) && here.includes(ends[1]);
      });
  if (!known)
    throw new UserError(`--fault ${fault.cause}: there is no link ${ends.join("-")}`, hint, 2);
}
