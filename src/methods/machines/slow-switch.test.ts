import { describe, expect, it } from "vitest";
import { seeded } from "../../base/random.ts";
import { buildJob } from "../../ingest/build-job.ts";
import { parseJobFile } from "../../ingest/job-file.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import { switchFindings } from "./slow-switch.ts";

const MACHINES = 6;
const NICS = 4;
const TICKS = 120;
const STEP_S = 10;
const name = (machine: number): string => `node${machine}`;

/** NIC k of every machine hangs on leaf k. */
const nicOf = (machine: number, k: number): string => `${name(machine)}/mlx5_${k}`;
const ranks = Array.from({ length: MACHINES * NICS }, (_, rank) => {
  const [machine, k] = [Math.floor(rank / NICS), rank % NICS];
  return { rank, machine: name(machine), gpu: k, nic: nicOf(machine, k) };
});
const leaves = Object.fromEntries(
  Array.from({ length: NICS }, (_, k) => [
    `leaf${k}`,
    Array.from({ length: MACHINES }, (__, machine) => nicOf(machine, k)),
  ]),
);
const job = buildJob(
  [],
  parseJobFile({ worldSize: MACHINES * NICS, ranks, network: { leaves } }, "job.json"),
);

/** A factor on what NIC `k` of a machine shows at a tick. */
type Trouble = (machine: number, k: number, tick: number) => number;

function gridOf(metric: string, devices: readonly string[], level: number, trouble: Trouble) {
  const random = seeded(7);
  const cells = MACHINES * TICKS;
  const [mean, low, high] = [0, Infinity, -Infinity].map((of) => new Float32Array(cells).fill(of));
  const [lowDevice, highDevice] = [new Uint8Array(cells), new Uint8Array(cells)];
  for (let at = 0; at < cells; at++)
    for (let k = 0; k < NICS; k++) {
      const factor = trouble(Math.floor(at / TICKS), k, at % TICKS);
      const value = level * factor * (0.9 + 0.2 * random());
      mean![at]! += value;
      if (value < low![at]!) [low![at], lowDevice[at]] = [value, k];
      if (value > high![at]!) [high![at], highDevice[at]] = [value, k];
    }
  const reporting = new Uint8Array(cells).fill(NICS);
  const facts = { metric, source: metric, stepS: STEP_S, startS: 0, ticks: TICKS, coverage: 1 };
  return { ...facts, mean, low, high, lowDevice, highDevice, reporting, devices } as MetricGrid;
}

/** The network knows NICs under other names than RDMA does. */
const fleetOf = (slower: Trouble): Fleet => ({
  machines: Array.from({ length: MACHINES }, (_, m) => name(m)),
  role: new Int32Array(MACHINES),
  roles: ["all"],
  grids: [
    gridOf("tcp-rdma-throughput", ["ens0", "ens1", "ens2", "ens3"], 1e9, slower),
    gridOf("ecn-packet-rate", ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"], 10, (m, k, t) =>
      slower(m, k, t) < 1 ? 50 : 1,
    ),
  ],
  missing: [],
});

const accused = (slower: Trouble) =>
  switchFindings(job, fleetOf(slower)).map(({ accuses: [one] }) => one);

describe("a slow leaf switch", () => {
  it("is what the NICs share that became unlike the others on all machines", () => {
    const [one, ...more] = accused((_, k, tick) => (k === 2 && tick >= 60 ? 0.4 : 1));
    expect(more).toEqual([]);
    expect(one).toMatchObject({
      type: "switch",
      name: "leaf2",
      cause: "network-slow",
      weight: 0.85,
    });
    expect(one!.ranks).toEqual([2, 6, 10, 14, 18, 22]);
  });

  it("is not meant where one machine's NIC is slow", () => {
    expect(accused((m, k, tick) => (m === 1 && k === 2 && tick >= 60 ? 0.4 : 1))).toEqual([]);
  });

  it("is not meant where the same NIC carries less everywhere since ever: that is what it is for", () => {
    expect(accused((_, k) => (k === 3 ? 0.2 : 1))).toEqual([]);
  });

  it("is not meant where all NICs carry less, or none", () => {
    expect(accused((_, _k, tick) => (tick >= 60 ? 0.4 : 1))).toEqual([]);
    expect(accused(() => 1)).toEqual([]);
  });

  it("is not meant where it was over minutes ago", () => {
    expect(accused((_, k, tick) => (k === 2 && tick >= 50 && tick < 80 ? 0.4 : 1))).toEqual([]);
  });
});
