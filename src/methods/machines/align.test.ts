import { describe, expect, it } from "vitest";
import type { MetricSamples, MetricSet, MetricType } from "../../model/metrics.ts";
import { alignFleet } from "./align.ts";

interface Series {
  readonly machine: string;
  readonly device?: string;
  readonly at: readonly (readonly [timeS: number, value: number])[];
}

function setOf(
  metrics: Record<string, { type?: MetricType; series: readonly Series[] }>,
): MetricSet {
  const all = Object.values(metrics).flatMap(({ series }) => series);
  const machines = [...new Set(all.map(({ machine }) => machine))].sort();
  const samples = Object.entries(metrics).map(
    ([name, { type = "unknown", series }]): MetricSamples => {
      const start = new Uint32Array(series.length + 1);
      series.forEach(({ at }, s) => (start[s + 1] = start[s]! + at.length));
      const points = series.flatMap(({ at }) => at);
      return {
        name,
        type,
        machine: Int32Array.from(series, ({ machine }) => machines.indexOf(machine)),
        device: series.map(({ device = "" }) => device),
        start,
        timeS: Float64Array.from(points, ([time]) => time),
        value: Float64Array.from(points, ([, value]) => value),
      };
    },
  );
  return { machines, hardware: machines.map(() => null), samples };
}

const every = (stepS: number, count: number, value: (i: number) => number): [number, number][] =>
  Array.from({ length: count }, (_, i) => [1000 + i * stepS, value(i)]);

const rows = (grid: { mean: Float32Array; ticks: number }, machine: number): number[] => [
  ...grid.mean.subarray(machine * grid.ticks, (machine + 1) * grid.ticks),
];

describe("alignment", () => {
  it("puts samples on ticks of the interval that it sees, and leaves gaps empty", () => {
    const at = every(15, 8, (i) => 60 + i).filter(([time]) => time !== 1030);
    const jittered = at.map(([time, value]): [number, number] => [time + (value % 2) * 0.2, value]);
    const fleet = alignFleet([
      setOf({ DCGM_FI_DEV_GPU_TEMP: { series: [{ machine: "a", device: "gpu0", at: jittered }] } }),
    ]);
    const [grid] = fleet.grids;
    expect(grid).toMatchObject({ metric: "gpu-temperature", stepS: 15, ticks: 8 });
    expect(rows(grid!, 0)).toEqual([60, 61, NaN, 63, 64, 65, 66, 67]);
    expect(grid!.coverage).toBeCloseTo(7 / 8);
  });

  it("makes rates of counters, skips resets, and takes what does not rise for a rate", () => {
    const counter = every(10, 40, (i) => 1e9 + 5e7 * i - (i >= 20 ? 8e8 : 0));
    const ready = every(10, 40, (i) => 5e6 + (i % 2) * 1e5);
    const name = "node_ethtool_transmitted_bytes_phy";
    const counted = alignFleet([setOf({ [name]: { series: [{ machine: "a", at: counter }] } })]);
    const rates = rows(counted.grids[0]!, 0);
    expect(rates[0]).toBeNaN();
    expect(rates[1]).toBeCloseTo(5e6);
    expect(rates[20]).toBeNaN();
    expect(rates[21]).toBeCloseTo(5e6);
    const table = alignFleet([setOf({ [name]: { series: [{ machine: "a", at: ready }] } })]);
    expect(rows(table.grids[0]!, 0)[1]).toBeCloseTo(5.1e6);
  });

  it("adds up both ways of a link, device by device, whether levels or counters", () => {
    const series = (value: (i: number) => number): Series[] => [
      { machine: "a", device: "gpu0", at: every(1, 10, value) },
      { machine: "a", device: "gpu1", at: every(1, 10, (i) => 3 * value(i)) },
    ];
    for (const [type, value] of [
      ["gauge", () => 2e9],
      ["counter", (i: number) => 1e12 + 2e9 * i],
    ] as const) {
      const fleet = alignFleet([
        setOf({
          DCGM_FI_PROF_PCIE_TX_BYTES: { type, series: series(value) },
          DCGM_FI_PROF_PCIE_RX_BYTES: { type, series: series(value) },
        }),
      ]);
      const grid = fleet.grids.find(({ metric }) => metric === "pcie-bandwidth")!;
      expect(grid.mean[5]).toBeCloseTo(type === "gauge" ? 16e9 : 4 * (1e12 / 1e12) * 4e9, -6);
      expect(grid.low[5]).toBeCloseTo(4e9, -6);
      expect(grid.high[5]).toBeCloseTo(12e9, -6);
      expect(grid.devices[grid.lowDevice![5]!]).toBe("gpu0");
      expect(grid.reporting![5]).toBe(2);
    }
  });

  it("computes shares: memory in use, CPUs that are not idle", () => {
    const idle = (cpu: string, share: number): Series => ({
      machine: "a",
      device: cpu,
      at: every(15, 10, (i) => 1e6 + 15 * i * share),
    });
    const fleet = alignFleet([
      setOf({
        node_cpu_seconds_total: { type: "counter", series: [idle("cpu0", 0.9), idle("cpu1", 0.7)] },
        node_memory_MemAvailable_bytes: { series: [{ machine: "a", at: every(15, 10, () => 25) }] },
        node_memory_MemTotal_bytes: { series: [{ machine: "a", at: [[1000, 100]] }] },
      }),
    ]);
    const grid = (id: string): number => fleet.grids.find(({ metric }) => metric === id)!.mean[5]!;
    expect(grid("cpu-usage")).toBeCloseTo(0.2, 4);
    expect(grid("memory-usage")).toBeCloseTo(0.75, 4);
  });

  it("takes the first source that is there, and words of a table's own as they are", () => {
    const fleet = alignFleet([
      setOf({
        DCGM_FI_PROF_SM_UTIL_RATIO: { series: [{ machine: "a", at: every(1, 5, () => 0.5) }] },
        fan_speed: { series: [{ machine: "a", at: every(1, 5, () => 4000) }] },
      }),
    ]);
    expect(fleet.grids.map(({ metric, source }) => [metric, source])).toEqual([
      ["gpu-sm-activity", "DCGM_FI_PROF_SM_UTIL_RATIO"],
      ["fan_speed", "fan_speed"],
    ]);
  });

  it("leaves out machines whose clock is off, and says so", () => {
    const series = ["a", "b", "c", "d"].map((machine, m) => ({
      machine,
      at: every(1, 60, () => 50).map(([t, v]): [number, number] => [t + (m === 3 ? 7200 : 0), v]),
    }));
    const fleet = alignFleet([setOf({ DCGM_FI_DEV_GPU_TEMP: { series } })]);
    expect(fleet.missing.join()).toMatch(/d is not compared: .* 7200 s after/);
    expect(fleet.grids[0]!.ticks).toBeLessThanOrEqual(7300);
    expect(rows(fleet.grids[0]!, 3).every(Number.isNaN)).toBe(true);
  });

  it("notices clocks that are off by minutes, and is not stretched by one absurd time", () => {
    const series = ["a", "b", "c", "d"].map((machine, m) => ({
      machine,
      at: every(15, 60, () => 50).map(([t, v], i): [number, number] => [
        t + (m === 3 ? -120 : 0) + (m === 1 && i === 59 ? 1e9 : 0),
        v,
      ]),
    }));
    const fleet = alignFleet([setOf({ DCGM_FI_DEV_GPU_TEMP: { series } })]);
    expect(fleet.missing.join()).toMatch(/d is not compared: .* 120 s before/);
    expect(fleet.grids[0]!.ticks).toBeLessThan(200);
  });

  it("counts machines with hundreds of CPUs rightly, and takes TX alone where there is no RX", () => {
    const cpus = Array.from({ length: 384 }, (_, cpu) => ({
      machine: "a",
      device: `cpu${cpu}`,
      at: every(15, 10, (i) => 1e6 + 15 * i * 0.7),
    }));
    const tx = [{ machine: "a", device: "gpu0", at: every(15, 10, () => 2e9) }];
    const fleet = alignFleet([
      setOf({
        node_cpu_seconds_total: { type: "counter", series: cpus },
        DCGM_FI_PROF_PCIE_TX_BYTES: { type: "gauge", series: tx },
      }),
    ]);
    const mean = (id: string): number => fleet.grids.find(({ metric }) => metric === id)!.mean[5]!;
    expect(mean("cpu-usage")).toBeCloseTo(0.3, 4);
    expect(mean("pcie-bandwidth")).toBeCloseTo(2e9, -8);
  });

  it("knows a machine by its short name where another exporter does", () => {
    const fleet = alignFleet([
      setOf({
        DCGM_FI_DEV_GPU_TEMP: {
          series: [{ machine: "node1", device: "gpu0", at: every(1, 9, () => 50) }],
        },
        node_memory_MemAvailable_bytes: {
          series: [{ machine: "node1.cluster.local", at: every(1, 9, () => 25) }],
        },
        node_memory_MemTotal_bytes: {
          series: [{ machine: "node1.cluster.local", at: every(1, 9, () => 100) }],
        },
      }),
    ]);
    expect(fleet.machines).toEqual(["node1"]);
    expect(fleet.grids).toHaveLength(2);
  });

  it("compares within stages and hardware where they are known", () => {
    const series = ["a", "b", "c"].map((machine) => ({ machine, at: every(1, 5, () => 50) }));
    const set = setOf({ DCGM_FI_DEV_GPU_TEMP: { series } });
    const stageOf = new Map([
      ["a", "stage 0"],
      ["b", "stage 1"],
      ["c", "stage 1"],
    ]);
    const mixed = { ...set, hardware: ["H100", "H100", "A100"] };
    expect(alignFleet([set], { stageOf }).roles).toEqual(["stage 0", "stage 1"]);
    expect(alignFleet([mixed], { stageOf }).roles).toEqual([
      "stage 0, H100",
      "stage 1, A100",
      "stage 1, H100",
    ]);
  });
});
