import { describe, expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import { parseJobFile } from "../../ingest/job-file.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { Deviation, FaultyMachine, MachineReport } from "../../model/machine-report.ts";
import { machineFindings } from "./machine-method.ts";

const NICS = 4;

/** Four machines of four ranks, a GPU and a NIC each. */
function jobOf(nic: (machine: number, k: number) => string | undefined) {
  const ranks = Array.from({ length: 4 * NICS }, (_, rank) => {
    const [machine, k] = [Math.floor(rank / NICS), rank % NICS];
    return { rank, machine: `node${machine}`, gpu: k, nic: nic(machine, k) };
  });
  return buildJob([], parseJobFile({ worldSize: 4 * NICS, ranks }, "job.json"));
}

const named = jobOf((machine, k) => `node${machine}/mlx5_${k}`);

/** Of the network's names, and of RDMA's: only how many there are, and in which order, says that they are the same. */
function fleetOf(names: readonly string[]): Fleet {
  const grid = (metric: string, devices: readonly string[]) =>
    ({ metric, devices }) as Partial<MetricGrid> as MetricGrid;
  return {
    grids: [
      grid("tcp-rdma-throughput", names),
      grid("ecn-packet-rate", ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]),
    ],
  } as Partial<Fleet> as Fleet;
}

const fleet = fleetOf(["enp24s0np0", "enp65s0np0", "enp155s0np0", "enp193s0np0"]);

const deviation = (
  metric: string,
  direction: Deviation["direction"],
  device: string | null,
  value: number,
  peers: number,
): Deviation => ({ metric, direction, device, value, peers, fromS: 0, toS: 600, sigmas: 20 });
const slow = (device: string, value = 4e8): Deviation =>
  deviation("tcp-rdma-throughput", "low", device, value, 1e9);
const pauses = deviation("pfc-tx-packet-rate", "high", "enp155s0np0", 5000, 5);

function faulty(machine: string, sinceS: number, ...deviations: Deviation[]): FaultyMachine {
  const facts = { metric: deviations[0]!.metric, score: 0.8, untilS: null, role: "all", order: 1 };
  return { machine, sinceS, ...facts, why: "something", deviations };
}

function accused(job: typeof named, machines: Fleet, ...list: FaultyMachine[]) {
  const report: MachineReport = {
    method: "peers",
    machines: 4,
    fromS: 0,
    toS: 1200,
    metrics: [],
    faulty: list,
    followers: [],
    telemetry: [],
    jitter: [],
    jittersLeftOut: 0,
    phases: [],
    missing: [],
  };
  return machineFindings(job, report, machines).map(({ accuses: [first] }) => {
    const { type, ranks, name, cause } = first!;
    return { type, ranks, name, cause };
  });
}

describe("a machine of which only one NIC is unlike the peers'", () => {
  const nic = { type: "nic", ranks: [6], name: "node1/mlx5_2", cause: "network-slow" };

  it("is accused of that NIC, known by its RDMA name", () => {
    const marks = deviation("ecn-packet-rate", "high", "mlx5_2", 9000, 50);
    expect(accused(named, fleet, faulty("node1", 600, pauses, marks))).toEqual([nic]);
  });

  it("is accused of that NIC, known by its place among as many names", () => {
    expect(accused(named, fleet, faulty("node1", 600, slow("enp155s0np0"), pauses))).toEqual([nic]);
  });

  it("is accused of that NIC, known by the GPU that sends less to it", () => {
    const bus = deviation("pcie-bandwidth", "low", "gpu2", 8e8, 3e9);
    const unnamed = fleetOf(["enp155s0np0", "eth0", "eth1"]);
    expect(accused(named, unnamed, faulty("node1", 600, slow("enp155s0np0"), bus))).toEqual([nic]);
  });

  it("is accused of that NIC, though one GPU's power differed by chance", () => {
    const power = deviation("gpu-power-draw", "high", "gpu3", 460, 360);
    expect(accused(named, fleet, faulty("node1", 600, slow("enp155s0np0"), power))).toEqual([nic]);
  });

  it("is accused of the NIC with all its ranks, where nothing says whose it is", () => {
    const silent = jobOf(() => undefined);
    expect(accused(silent, fleet, faulty("node1", 600, slow("enp155s0np0")))).toEqual([
      { ...nic, ranks: [4, 5, 6, 7], name: "node1/enp155s0np0" },
    ]);
  });
});

describe("a machine is accused as a whole", () => {
  const whole = { type: "machine", ranks: [4, 5, 6, 7], name: "node1" };

  it.each([
    ["its CPU is busier, too", deviation("cpu-usage", "high", null, 0.5, 0.2)],
    ["all its NICs send pauses", deviation("pfc-tx-packet-rate", "high", null, 5000, 5)],
    ["another NIC is unlike the peers', too", slow("enp24s0np0")],
    ["a GPU's clock is low", deviation("gpu-clocks", "low", "gpu2", 1200, 1900)],
  ])("where %s", (_, other) => {
    const [first] = accused(named, fleet, faulty("node1", 600, slow("enp155s0np0"), other));
    expect(first).toMatchObject(whole);
  });

  it("where no job says who runs on it", () => {
    const nobody = buildJob([], null);
    expect(accused(nobody, fleet, faulty("node1", 600, slow("enp155s0np0")))).toMatchObject([
      { type: "machine", ranks: [], name: "node1" },
    ]);
  });
});

describe("the NICs of two machines", () => {
  const link = {
    type: "link",
    ranks: [6, 10],
    name: "node1/mlx5_2–node2/mlx5_2",
    cause: "network-slow",
  };
  const at = (machine: string, sinceS: number, value: number): FaultyMachine =>
    faulty(machine, sinceS, slow("enp155s0np0", value));

  it("are the ends of a slow link, if they fell together and as far", () => {
    const both = [at("node2", 610, 4.1e8), at("node1", 600, 4e8)];
    expect(accused(named, fleet, ...both)).toEqual([link, link]);
  });

  it.each([
    ["one fell later", [at("node1", 600, 4e8), at("node2", 800, 4e8)]],
    ["one fell farther", [at("node1", 600, 4e8), at("node2", 600, 6e8)]],
    ["a third fell, too", [at("node1", 600, 4e8), at("node2", 600, 4e8), at("node3", 600, 4e8)]],
  ])("are accused each for itself, if %s", (_, all) => {
    for (const one of accused(named, fleet, ...all)) expect(one.type).toBe("nic");
  });
});
