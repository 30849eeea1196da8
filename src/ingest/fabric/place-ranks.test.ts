import { describe, expect, it } from "vitest";
import type { FabricPort } from "../../model/fabric.ts";
import { buildJob } from "../build-job.ts";
import { NO_JOB_FILE } from "../job-file.ts";
import { liveJob } from "../live-job.ts";

const NONE = { nic: null, leaf: null, rack: null, rail: null };

function port(machine: string, more: Partial<FabricPort>): FabricPort {
  return { machine, ...NONE, ...more };
}

/** Two machines of four ranks each, as agents name them. */
function placed(fabric: readonly FabricPort[], nic: (gpu: number) => string | null = () => null) {
  const ranks = Array.from({ length: 8 }, (_, rank) => {
    const machine = `node${rank >> 2}.cluster`;
    const gpu = rank % 4;
    return [rank, { machine, gpu, nic: nic(gpu) && `${machine}/${nic(gpu)}` }] as const;
  });
  const job = buildJob([], { ...NO_JOB_FILE, worldSize: 8, ranks: new Map(ranks), fabric });
  return {
    leaves: [...job.ranks.values()].map(({ leaf }) => leaf),
    nics: [...job.ranks.values()].map((one) => one.nic),
    missing: job.missing,
  };
}

it("agents' ranks hang on the switches of the site", () => {
  const agents = [0, 1].map((rank) => ({
    rank,
    machine: "node0",
    gpu: rank,
    nic: `node0/mlx5_${rank}`,
    pid: null,
    leaf: null,
    stage: null,
    groups: [],
  }));
  const fabric = rails(["node0"], ["mlx5_0", "mlx5_1"]);
  const { job } = liveJob("llm", 2, agents, { ...NO_JOB_FILE, fabric });
  expect([...job.ranks.values()].map(({ leaf }) => leaf)).toEqual(["leaf-r0", "leaf-r1"]);
});

const rails = (machines: readonly string[], nics: readonly string[]): FabricPort[] =>
  machines.flatMap((machine) => nics.map((nic, k) => port(machine, { nic, leaf: `leaf-r${k}` })));

describe("ranks on the fabric", () => {
  it("are found by their NIC, also where the subnet manager counts from 1", () => {
    const ports = rails(["node0", "node1"], ["HCA-1", "HCA-2", "HCA-3", "HCA-4"]);
    const { leaves, missing } = placed(ports, (gpu) => `mlx5_${3 - gpu}`);
    const own = ["leaf-r3", "leaf-r2", "leaf-r1", "leaf-r0"];
    expect(leaves).toEqual([...own, ...own]);
    expect(missing).toEqual([]);
  });

  it("are served by NICs in their order where nothing else is known, and this is said", () => {
    const { leaves, nics, missing } = placed(rails(["node0", "node1"], ["ens1", "ens2"]));
    expect(leaves.slice(0, 4)).toEqual(["leaf-r0", "leaf-r0", "leaf-r1", "leaf-r1"]);
    expect(nics[4]).toBe("node1.cluster/ens1");
    expect(missing).toEqual([
      "on 2 machines (node0, node1) NICs are taken to serve GPUs in their order",
    ]);
  });

  it("stay without a switch where the numbers do not fit", () => {
    const { leaves, missing } = placed(rails(["node0", "node1"], ["ens1", "ens2", "ens3"]));
    expect(leaves).toEqual(Array(8).fill(null));
    expect(missing).toEqual([
      "on 2 machines (node0, node1) nothing says which NIC serves which GPU",
    ]);
  });

  it("share the switch of a machine that has one, the management network left out", () => {
    const ports = ["node0", "node1"].flatMap((machine, k) => [
      port(machine, { nic: "eno1", leaf: "oob-mgmt-1" }),
      port(machine, { nic: "ens1", leaf: `leaf-${k}` }),
      port(machine, { nic: "ens2", leaf: `leaf-${k}` }),
    ]);
    const { leaves, missing } = placed(ports);
    expect(leaves).toEqual([...Array(4).fill("leaf-0"), ...Array(4).fill("leaf-1")]);
    expect(missing).toEqual([]);
  });

  it("are named by rack or rail where no switch is known, and machines without any are named", () => {
    const { leaves, missing } = placed([port("node0", { rack: "R7" })]);
    expect(leaves).toEqual([...Array(4).fill("rack R7"), ...Array(4).fill(null)]);
    expect(missing).toEqual([
      "what describes the network does not name 1 machine (node1) of the job",
    ]);
    const byRail = placed([0, 1, 2, 3].map((rail) => port("node0", { rail: String(rail) })));
    expect(byRail.leaves.slice(0, 4)).toEqual(["rail 0", "rail 1", "rail 2", "rail 3"]);
  });
});
