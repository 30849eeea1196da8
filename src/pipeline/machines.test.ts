import { describe, expect, it } from "vitest";
import { askFleet, suspectPictures } from "./machines.ts";
import type { Fleet, MetricGrid } from "../model/fleet.ts";
import type { MachinePicture } from "../model/machine-picture.ts";

const MACHINES = 8;
const TICKS = 60;
const STEP_S = 15;
const START_S = 1_800_000_000;
const USUAL = new Map([
  ["gpu-clocks", 1900],
  ["gpu-temperature", 60],
  ["gpu-power-draw", 600],
  ["gpu-duty-cycle", 97],
  ["tcp-rdma-throughput", 2e10],
  ["pfc-tx-packet-rate", 3],
  ["cpu-usage", 0.3],
  ["memory-usage", 0.5],
]);

/** Machines that do alike; `sick`, if any, draws a third of the power and is busy a third of the time in the second half. */
function fleetOf(sick: number): Fleet {
  const grids = [...USUAL].map(([metric, usual]): MetricGrid => {
    const mean = Float32Array.from({ length: MACHINES * TICKS }, (_, i) => {
      const [m, t] = [Math.floor(i / TICKS), i % TICKS];
      const isSick = m === sick && /power|duty/.test(metric) && t >= TICKS / 2;
      return usual * (1 + 0.005 * Math.sin((m + 1) * (t + 1))) * (isSick ? 0.3 : 1);
    });
    // The last scrape of machine 0 is not there yet.
    mean[TICKS - 1] = NaN;
    const none = { lowDevice: null, highDevice: null, reporting: null, devices: [] };
    const grid = { source: metric, stepS: STEP_S, startS: START_S, ticks: TICKS, coverage: 1 };
    return { metric, mean, low: mean, high: mean, ...grid, ...none };
  });
  const machines = Array.from({ length: MACHINES }, (_, m) => `node${m}.cluster`);
  return { machines, role: new Int32Array(MACHINES), roles: ["all machines"], grids, missing: [] };
}

type Suspects = Parameters<typeof suspectPictures>[4];

async function drawn(machines: string[], suspects: Suspects, sick = -1): Promise<MachinePicture[]> {
  const fleet = fleetOf(sick);
  const { report } = await askFleet(fleet, { method: "peers" });
  return suspectPictures(fleet, report, machines, START_S + 300, suspects);
}

function words(pictures: readonly MachinePicture[]): string[] {
  return pictures.map(({ machine, metric }) => `${machine} ${metric}`);
}

describe("pictures of suspects' machines", () => {
  it("show a machine that is like its peers by what is suspected of it", async () => {
    const pictures = await drawn(
      ["node1", "node2"],
      [
        { type: "rank", cause: "gpu-slow", machine: "node1" },
        { type: "rank", cause: "dataloader", machine: "node2" },
      ],
    );
    expect(words(pictures)).toEqual([
      "node1.cluster gpu-clocks",
      "node1.cluster gpu-temperature",
      "node1.cluster gpu-power-draw",
      "node1.cluster gpu-duty-cycle",
      "node2.cluster cpu-usage",
      "node2.cluster memory-usage",
    ]);
  });

  it("show both machines of a link by their networks", async () => {
    const link = { type: "link", cause: "network-slow", machine: null } as const;
    expect(words(await drawn(["node3", "node5"], [link]))).toEqual([
      "node3.cluster tcp-rdma-throughput",
      "node3.cluster pfc-tx-packet-rate",
      "node5.cluster tcp-rdma-throughput",
      "node5.cluster pfc-tx-packet-rate",
    ]);
  });

  it("claim no time in which such a machine was unlike, and end where it was last seen", async () => {
    const [first, later] = [await drawn(["node0"], []), await drawn(["node4"], [])];
    expect(first).toHaveLength(3);
    for (const { fromS, toS, timeS } of first) expect([fromS, toS]).toEqual(twice(timeS.at(-2)!));
    for (const { fromS, toS, timeS } of later) expect([fromS, toS]).toEqual(twice(timeS.at(-1)!));
  });

  it("show a machine that is unlike its peers by that, whatever is suspected", async () => {
    const nic = { type: "nic", cause: "network-slow", machine: "node6" } as const;
    const [picture] = await drawn(["node6"], [nic], 6);
    expect(picture!.metric).toMatch(/power|duty/);
    expect(picture!.toS - picture!.fromS).toBeGreaterThan(300);
  });
});

function twice(value: number): number[] {
  return [value, value];
}
