/**
 * What the faults of a regime do to what is measured. Times follow from the simulation's devices; what else
 * a sensor shows (clocks, PFC, memory, samples that vanish) follows from the cause, and for hardware faults
 * from Minder's Table 1.
 */
import type { Simulation } from "../../cluster/times.ts";
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { devicesAt, faultRanks, healthyDevices, type DeviceState } from "../../cluster/faults.ts";
import { STREAM, uniform } from "../../cluster/noise.ts";
import { shownGroups, type MetricGroup } from "./minder-table.ts";
import type { Regime } from "./timeline.ts";

/** On one GPU, with its process and its NIC. Factors are 1 and flags false where nothing is wrong. */
export interface GpuEffect {
  /** Factor on the time of kernels. */
  slow: number;
  /** Hot, with its clock lowered by `slow`. */
  throttled: boolean;
  /** Its process comes late with work: the GPU has nothing to do meanwhile. */
  late: boolean;
  /** No kernel runs at all. */
  idle: boolean;
  /** A kernel of the model that never ends holds this share of the SMs, and does nothing there; 0 where there is none. */
  stuck: number;
  /** The process gave its memory back, or filled it. */
  memory: "used" | "freed" | "full";
  /** The card does not answer any more: its samples are missing. */
  gone: boolean;
  xid: number;
  /** Factor by which its clock is lowered, without heat: a forgotten setting, a power brake. */
  slowClock: number;
  /** PCIe generation and lanes of the link; 5 and 16 are what an H100 has. */
  linkGen: number;
  linkWidth: number;
  /** Factor on what the NIC carries. */
  traffic: number;
  /** Factor on the rates of PFC pauses, ECN marks and CNPs. */
  pfc: number;
  congestion: number;
  linkDown: boolean;
}

export interface MachineEffect {
  /** Factor on CPU usage, and load of others on top of it. */
  cpu: number;
  contention: number;
  iowait: number;
  /** Factor on the host memory of the job. */
  memory: number;
  tcp: number;
  /** Bytes that appear on the disk, such as core dumps. */
  diskBytes: number;
}

/** By the GPU's rank in the unmoved layout. */
export interface Effects {
  gpu(rank: number): Readonly<GpuEffect>;
  machine(machine: number): Readonly<MachineEffect>;
}

export const HEALTHY_GPU: Readonly<GpuEffect> = {
  slow: 1,
  throttled: false,
  late: false,
  idle: false,
  stuck: 0,
  memory: "used",
  gone: false,
  xid: 0,
  slowClock: 1,
  linkGen: 5,
  linkWidth: 16,
  traffic: 1,
  pfc: 1,
  congestion: 1,
  linkDown: false,
};

export const HEALTHY_MACHINE: Readonly<MachineEffect> = {
  cpu: 1,
  contention: 0,
  iowait: 0,
  memory: 1,
  tcp: 1,
  diskBytes: 0,
};

const XIDS: Readonly<Record<string, number>> = { ecc: 48, nvlink: 74, "card-drop": 79 };

export function effectsOf(simulation: Simulation, regime: Regime): Effects {
  const { spec, topology } = simulation;
  const draft = new Draft(simulation);
  const { severities, iteration, stopped } = regime;
  if (!stopped && severities.some((severity) => severity > 1)) {
    const devices = devicesAt(spec, topology, iteration) ?? healthyDevices(spec, topology);
    draft.devices(devices);
  }
  spec.faults.forEach((fault, n) => {
    if (severities[n]! <= 1) return;
    const shown = shownGroups(fault, n, spec.seed);
    if (severities[n] === Infinity && stopped) draft.end(fault, shown);
    else draft.slow(fault, severities[n]!, shown);
  });
  return draft;
}

class Draft implements Effects {
  readonly #simulation: Simulation;
  readonly #gpus = new Map<number, GpuEffect>();
  readonly #machines = new Map<number, MachineEffect>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  gpu(rank: number): Readonly<GpuEffect> {
    return this.#gpus.get(rank) ?? HEALTHY_GPU;
  }

  machine(machine: number): Readonly<MachineEffect> {
    return this.#machines.get(machine) ?? HEALTHY_MACHINE;
  }

  /** What follows from the devices' state alone. */
  devices({ gpu, cpu, nic, leaf, spine, pair, pauseNs, loadNs, sync }: DeviceState): void {
    const { spec, topology } = this.#simulation;
    const worstSpine = Math.max(1, ...spine);
    const paired = new Map<number, number>();
    for (const [key, factor] of pair) paired.set(Math.floor(key / spec.gpus), factor);
    for (let rank = 0; rank < spec.gpus; rank++) {
      const late = cpu[rank]! > 1 || pauseNs[rank]! > 0 || loadNs[rank]! > 0 || sync[rank] === 1;
      const wire = Math.max(nic[rank]!, leaf[topology.leafOf(rank)]!, paired.get(rank) ?? 1);
      if (gpu[rank] === 1 && !late && wire === 1 && worstSpine === 1) continue;
      const effect = this.#gpu(rank);
      effect.slow = gpu[rank]!;
      effect.late = late;
      // A slow NIC or link: less goes out while it is used, pauses and congestion marks pile up.
      effect.traffic = 1 / Math.sqrt(wire);
      effect.pfc = wire > 1 ? 60 * wire : 1;
      effect.congestion = Math.max(wire > 1 ? 20 * wire : 1, worstSpine > 1 ? 6 * worstSpine : 1);
      const machine = this.#machine(topology.machineOf(rank));
      if (cpu[rank]! > 1) machine.contention = Math.min(0.75, 0.25 * Math.log2(1 + cpu[rank]!));
      if (loadNs[rank]! > 0) machine.iowait = 0.12;
    }
  }

  /** A fault that slows the job down. */
  slow(fault: FaultSpec, severity: number, shown: ReadonlySet<MetricGroup>): void {
    const { spec, topology } = this.#simulation;
    if (fault.switch !== null || fault.link !== null) return;
    for (const rank of faultRanks(spec, topology, fault)) {
      if (fault.cause === "gpu-slow" && fault.signature === "") this.#gpu(rank).throttled = true;
      if (fault.signature === "") continue;
      this.#hardware(fault, rank, shown);
      const machine = this.#machine(topology.machineOf(rank));
      if (shown.has("cpu")) machine.cpu = 0.6;
      if (shown.has("memory")) machine.memory = 0.8;
      if (shown.has("throughput")) this.#gpu(rank).traffic = Math.min(0.55, 1 / severity);
      if (shown.has("disk")) machine.diskBytes = 4e10;
      if (shown.has("gpu")) this.#gpu(rank).late = true;
    }
  }

  /** A fault that ended the job: its ranks are dead or stuck, everybody else waits for them. */
  end(fault: FaultSpec, shown: ReadonlySet<MetricGroup>): void {
    const { spec, topology } = this.#simulation;
    if (fault.switch !== null || fault.link !== null) return;
    for (const rank of faultRanks(spec, topology, fault)) {
      const gpu = this.#gpu(rank);
      const machine = this.#machine(topology.machineOf(rank));
      const share = 1 / spec.gpusPerMachine;
      if (fault.cause === "network-hang") {
        // Nobody has died: its process waits in the operator, as those beside it do.
        gpu.pfc = 200;
        gpu.congestion = 30;
        if (fault.signature === "nic-drop") this.#dropNic(rank);
        continue;
      }
      if (fault.cause === "gpu-hang") {
        this.#hang(rank, shown, uniform(spec.seed ^ STREAM.metrics, rank, 0, 0x57c));
        continue;
      }
      this.#hardware(fault, rank, shown);
      gpu.idle = true;
      machine.cpu = Math.max(0.05, machine.cpu - share);
      if (!["process-stopped", "cpu-stall"].includes(fault.cause)) {
        gpu.memory = fault.cause === "gpu-memory" ? "full" : "freed";
        machine.memory = Math.max(0.05, machine.memory - share);
      }
      // Minder §2.3: the process of the whole machine ceases while the others wait for it.
      if (shown.has("cpu")) machine.cpu = 0.06;
      if (shown.has("memory")) machine.memory = 0.15;
      if (shown.has("throughput")) machine.tcp = 0.02;
      if (shown.has("disk")) machine.diskBytes = 4e10;
      if (shown.has("gpu"))
        this.#wholeMachine(topology.machineOf(rank), (other) => (other.idle = true));
    }
  }

  #hardware(fault: FaultSpec, rank: number, shown: ReadonlySet<MetricGroup>): void {
    const { topology } = this.#simulation;
    const gpu = this.#gpu(rank);
    const machine = topology.machineOf(rank);
    if (fault.cause === "gpu-error" || fault.signature !== "") {
      gpu.xid = XIDS[fault.signature] ?? (fault.cause === "gpu-error" ? 62 : 0);
    }
    // The link falls back to the slowest generation; its NIC's buffer fills and it sends pauses (Fig. 3).
    if (fault.signature === "pcie") gpu.linkGen = 1;
    if (fault.signature === "card-drop") gpu.gone = true;
    if (fault.signature === "nic-drop") this.#dropNic(rank);
    if (shown.has("pfc")) this.#wholeMachine(machine, (other) => (other.pfc = 4000));
  }

  #dropNic(rank: number): void {
    const gpu = this.#gpu(rank);
    gpu.linkDown = true;
    gpu.traffic = 0;
  }

  /**
   * One GPU stands still. Its process lives and waits, and so do those on the machine's other GPUs, which spin in a
   * collective: Table 1, where whole machines cease, tells only in which metrics of this GPU it shows. A kernel that never
   * ends keeps the duty cycle at 100 % and holds anything from one thread block's SM to all of them.
   */
  #hang(rank: number, shown: ReadonlySet<MetricGroup>, drawn: number): void {
    const gpu = this.#gpu(rank);
    if (shown.has("gpu")) gpu.idle = true;
    else gpu.stuck = 0.01 ** drawn;
    // What comes in is not fetched any more.
    if (shown.has("pfc")) gpu.pfc = 4000;
    // Who sleeps until its GPU answers spins no more.
    const machine = this.#machine(this.#simulation.topology.machineOf(rank));
    if (shown.has("cpu"))
      machine.cpu = Math.max(0.05, machine.cpu - 1 / this.#simulation.spec.gpusPerMachine);
  }

  #wholeMachine(machine: number, change: (gpu: GpuEffect) => void): void {
    const { gpusPerMachine, gpus } = this.#simulation.spec;
    const until = Math.min(gpus, (machine + 1) * gpusPerMachine);
    for (let rank = machine * gpusPerMachine; rank < until; rank++) change(this.#gpu(rank));
  }

  #gpu(rank: number): GpuEffect {
    const known = this.#gpus.get(rank) ?? { ...HEALTHY_GPU };
    this.#gpus.set(rank, known);
    return known;
  }

  #machine(machine: number): MachineEffect {
    const known = this.#machines.get(machine) ?? { ...HEALTHY_MACHINE };
    this.#machines.set(machine, known);
    return known;
  }
}
