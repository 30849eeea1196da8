/**
 * "logs/dmesg.<machine>.log": what the kernel of a machine with broken hardware says, as `dmesg -T` prints
 * it. Xid numbers and wording: NVIDIA's Xid catalogue; PCIe and NIC lines: the kernel's AER driver and
 * mlx5_core (drivers/net/ethernet/mellanox/mlx5/core/health.c, main.c). Healthy machines leave none.
 */
import { machineNs } from "../../cluster/clocks.ts";
import type { Simulation } from "../../cluster/times.ts";
import type { FaultSpec } from "../../cluster/fault-spec.ts";
import { faultRanks } from "../../cluster/faults.ts";
import { hash, STREAM } from "../../cluster/noise.ts";
import type { Output } from "../emitter.ts";
import { busOf } from "../pci.ts";
import { kernelStamp } from "./stamps.ts";

/** Adds the lines of one fault; `fatal` where the job ends of it. */
export class KernelLogs {
  readonly #simulation: Simulation;
  readonly #lines = new Map<number, string[]>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  add(fault: FaultSpec, jobNs: number, fatal: boolean): void {
    const { spec, topology } = this.#simulation;
    if (fault.signature === "" && fault.cause !== "gpu-error") return;
    for (const rank of faultRanks(spec, topology, fault)) {
      const machine = topology.machineOf(rank);
      const pid = 2000 + (hash(spec.seed ^ STREAM.logs, machine, 0, 0) % 60_000);
      const texts = kernelLines(fault, topology.gpuOf(rank), pid + topology.gpuOf(rank), fatal);
      const known = this.#lines.get(machine) ?? [];
      this.#lines.set(machine, known);
      texts.forEach((text, i) => {
        const ns = spec.epochNs + BigInt(Math.round(machineNs(spec, machine, jobNs + i * 3e7)));
        known.push(`[${kernelStamp(ns)}] ${text}`);
      });
    }
  }

  end(output: Output): void {
    for (const [machine, lines] of this.#lines) {
      const file = output.open(`logs/dmesg.${this.#simulation.topology.machineName(machine)}.log`);
      for (const line of lines) file.write(`${line}\n`);
      file.end();
    }
  }
}

function kernelLines({ signature }: FaultSpec, gpu: number, pid: number, fatal: boolean): string[] {
  const bus = busOf(gpu);
  const xid = `NVRM: Xid (PCI:0000:${bus}:00)`;
  const nic = `mlx5_core 0000:${(Number.parseInt(bus, 16) + 1).toString(16).padStart(2, "0")}:00.0`;
  const nobody = "pid='<unknown>', name=<unknown>";
  switch (signature) {
    case "ecc":
      return [
        ...(fatal
          ? [
              `${xid}: 48, ${nobody}, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, subpartition 0.`,
            ]
          : []),
        `${xid}: 63, ${nobody}, Row Remapper: New row (0x00000000002a4d80) marked for remapping, reset gpu to activate.`,
        ...(fatal
          ? [
              `${xid}: 94, pid=${pid}, name=python, Contained: SM (0x1). RST: No, D-RST: No, channel 0x00000009`,
            ]
          : []),
      ];
    case "nvlink":
      return [
        `${xid}: 74, ${nobody}, NVLink: fatal error detected on link ${gpu % 18}(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)`,
      ];
    case "card-drop":
      return [
        `${xid}: 79, ${nobody}, GPU has fallen off the bus.`,
        `NVRM: GPU 0000:${bus}:00.0: GPU has fallen off the bus.`,
      ];
    case "pcie":
      return [
        `pcieport 0000:${bus}:00.0: AER: Multiple Corrected error message received from 0000:${bus}:00.0`,
        `${nic}: 31.504 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x16 link at 0000:${bus}:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)`,
      ];
    case "nic-drop":
      return [
        `${nic}: poll_health:953:(pid 0): device's health compromised - reached miss count`,
        `${nic}: mlx5_error_sw_reset:231:(pid ${pid + 9000}): start`,
        `${nic} ens${gpu}np0: Link down`,
      ];
    default:
      return [
        `${xid}: 62, pid=${pid}, name=python, Internal micro-controller halt (newer drivers)`,
      ];
  }
}
