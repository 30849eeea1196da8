import { expect, it } from "vitest";
import { makeTopology } from "../../simulate/cluster/topology.ts";
import { completeSpec } from "../../simulate/cluster/spec.ts";
import { SIMULATED_NICS } from "./simulated-nics.ts";

it("calls NICs as folders of the same job do", () => {
  const topology = makeTopology(completeSpec({ gpus: 32, gpusPerMachine: 8 }));
  for (const rank of [0, 7, 8, 29]) {
    const machine = topology.machineName(topology.machineOf(rank));
    expect(`${machine}/${SIMULATED_NICS[topology.gpuOf(rank)]}`).toBe(topology.nicName(rank));
  }
});
