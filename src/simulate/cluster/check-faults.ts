/** Refuses faults that name what the job does not have, or that could do nothing in it. */
import { UserError } from "../../base/errors.ts";
import type { FaultSpec } from "./fault-spec.ts";
import { faultRanks } from "./faults.ts";
import { linkEnds } from "./links.ts";
import type { ClusterSpec } from "./spec.ts";
import type { Topology } from "./topology.ts";

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
        `--fault ${fault.cause}: it starts at iteration ${fault.from}, after the job's last one`,
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
      `--fault ${fault.cause}: all ranks are on one machine, so nothing passes a NIC or a switch`,
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
  const last = topology.machineName(topology.machines - 1);
  const hint =
    `ranks 0 to ${spec.gpus - 1}, or a machine and its leaf (${topology.machineName(0)}-leaf0), ` +
    `or two machines (${topology.machineName(0)} to ${last})`;
  if (!isKnown(spec, topology, ends))
    throw new UserError(`--fault ${fault.cause}: there is no link ${ends.join("-")}`, hint, 2);
}

function isKnown(spec: ClusterSpec, topology: Topology, ends: readonly [string, string]): boolean {
  if (ends.every((end) => /^\d+$/.test(end)))
    return ends.every((end) => Number(end) < spec.gpus) && Number(ends[0]) !== Number(ends[1]);
  const between = linkEnds(topology, spec.gpus, ends);
  if (between !== null) return ends[0] !== ends[1] && between.every((ranks) => ranks.length > 0);
  return Array.from({ length: spec.gpus }, (_, rank) => rank).some((rank) => {
    const here = [
      topology.machineName(topology.machineOf(rank)),
      topology.leafName(topology.leafOf(rank)),
    ];
    return here.includes(ends[0]) && here.includes(ends[1]);
  });
}
