/** "truth.json" and "job.json": what was broken, and what the job is (both fixed by the contract). */
import { isEnding, faultRanks } from "../cluster/faults.ts";
import type { Simulation } from "../cluster/times.ts";
import type { FaultSpec } from "../cluster/fault-spec.ts";
import { smallest } from "../../base/numbers.ts";
import type { Output } from "./emitter.ts";

const HANGS = ["network-hang", "gpu-hang", "process-stopped", "cpu-stall"];

export function writeTruth(simulation: Simulation, output: Output): void {
  const { spec, topology } = simulation;
  const last = smallest(
    spec.faults.flatMap((fault) => (isEnding(fault, fault.from) ? [fault.from] : [])),
    spec.iterations,
  );
  const faults = spec.faults.map((fault) => ({
    cause: fault.cause,
    ranks: ranksOf(simulation, fault),
    machine: machineOf(simulation, fault),
    link:
      fault.link === null
        ? null
        : fault.link.map((end) => (/^\d+$/.test(end) ? `rank:${end}` : end)),
    switch: fault.switch,
    fromIteration: fault.from,
    toIteration: Math.min(isEnding(fault, fault.from) ? fault.from : fault.to, last),
    // What ends the job has no strength.
    severity: isEnding(fault, fault.from) ? null : fault.severity,
    shape: fault.shape,
    ...(fault.how === "" ? {} : { how: fault.how }),
    ...(fault.cost === 0 ? {} : { cost: fault.cost }),
  }));
  put(output, "truth.json", { kind: kindOf(spec.faults), faults });
  const leaves: Record<string, string[]> = {};
  const ranks = Array.from({ length: spec.gpus }, (_, rank) => {
    const nic = topology.nicName(rank);
    (leaves[topology.leafName(topology.leafOf(rank))] ??= []).push(nic);
    return {
      rank,
      machine: topology.machineName(topology.machineOf(rank)),
      gpu: topology.gpuOf(rank),
      nic,
    };
  });
  put(output, "job.json", {
    name: spec.name,
    worldSize: spec.gpus,
    parallel: { tp: spec.tp, pp: spec.pp, dp: spec.dp, ep: spec.ep, cp: spec.cp },
    rankOrder: spec.cp > 1 ? "tp-cp-dp-pp" : "tp-dp-pp",
    iterations: spec.iterations,
    microBatches: spec.microBatches,
    schedule: spec.schedule,
    seed: spec.seed,
    ranks,
    network: {
      leaves,
      spines: Array.from({ length: topology.spines }, (_, i) => `spine${i}`),
      rails: topology.rails,
    },
  });
}

/** What the whole job shows: the fault that ends it decides, else the earliest slow one. */
function kindOf(faults: readonly FaultSpec[]): string {
  const ending = faults
    .filter((fault) => isEnding(fault, fault.from))
    .sort((a, b) => a.from - b.from)[0];
  if (ending) return HANGS.includes(ending.cause) ? "hang" : "crash";
  if (faults.length === 0) return "healthy";
  return faults.some((fault) => fault.from > 1) ? "fail-slow" : "regression";
}

function ranksOf({ spec, topology }: Simulation, fault: FaultSpec): number[] {
  if (fault.link !== null && fault.link.every((end) => /^\d+$/.test(end)))
    return fault.link.map(Number);
  if (fault.switch !== null || fault.link !== null) return [];
  return faultRanks(spec, topology, fault);
}

function machineOf(simulation: Simulation, fault: FaultSpec): string | null {
  if (fault.machine !== null) return fault.machine;
  const { topology } = simulation;
  const machines = new Set(ranksOf(simulation, fault).map((rank) => topology.machineOf(rank)));
  return machines.size === 1 ? topology.machineName([...machines][0]!) : null;
}

function put(output: Output, path: string, value: unknown): void {
  const file = output.open(path);
  file.write(`${JSON.stringify(value, null, 1)}\n`);
  file.end();
}
