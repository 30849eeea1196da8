/** Fleets as other exporters name them, through the labels that they really have. */
import { describe, expect, it } from "vitest";
import { MetricSetBuilder } from "../../ingest/metrics/metric-set-builder.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MetricType } from "../../model/metrics.ts";
import { alignFleet } from "./align.ts";
import { findMachines } from "./find-machines.ts";
import { EPOCH_S } from "../../../test/support/methods/fleet.ts";

const STEP_S = 15;
const TICKS = 80;

interface Sampled {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly type?: MetricType;
  readonly at: (atS: number) => number;
}

/** `of` says what a machine's exporters show. */
function fleetOf(machines: number, of: (machine: number) => readonly Sampled[]): Fleet {
  const builder = new MetricSetBuilder();
  for (let m = 0; m < machines; m++) {
    for (const { name, labels, type, at } of of(m)) {
      const own = new Map([["instance", `node${m}:9100`], ...Object.entries(labels)]);
      const series = builder.labelled(name, own, type ?? "gauge");
      if (series < 0) continue;
      for (let t = 0; t < TICKS; t++) builder.add(series, EPOCH_S + STEP_S * t, at(STEP_S * t));
    }
  }
  return alignFleet([builder.finish()]);
}

const gridOf = (fleet: Fleet, metric: string): MetricGrid =>
  fleet.grids.find((grid) => grid.metric === metric)!;
const lastOf = ({ mean, ticks }: MetricGrid, m: number): number => mean[(m + 1) * ticks - 1]!;

describe("GPUs that are known", () => {
  const SLOW_S = 600;
  const clock = (machine: number, gpu: number) => (atS: number) =>
    machine === 3 && gpu === 1 && atS >= SLOW_S ? 900e6 : 1755e6;
  const smi = (machine: number): Sampled[] =>
    [0, 1, 2, 3].map((gpu) => ({
      name: "nvidia_smi_clocks_current_sm_clock_hz",
      labels: { uuid: `${machine}a-${gpu}` },
      at: clock(machine, gpu),
    }));

  it("by UUID alone are told apart, and share their names with those of other machines", () => {
    const fleet = fleetOf(80, smi);
    const { devices, reporting } = gridOf(fleet, "gpu-clocks");
    expect(devices).toEqual(["gpu#1", "gpu#2", "gpu#3", "gpu#4"]);
    expect(reporting![0]).toBe(4);
    const { faulty } = findMachines(fleet);
    expect(faulty).toMatchObject([{ machine: "node3", metric: "gpu-clocks" }]);
    expect(faulty[0]!.deviations[0]).toMatchObject({ device: "gpu#2", peers: 1755 });
  });

  it("by UUID get their number where nvidia_smi_gpu_info tells it", () => {
    const fleet = fleetOf(3, (machine) => [
      ...[0, 1, 2, 3].map((gpu) => ({
        name: "nvidia_smi_gpu_info",
        labels: { uuid: `${machine}a-${gpu}`, index: String(3 - gpu) },
        at: () => 1,
      })),
      ...smi(machine),
    ]);
    expect(gridOf(fleet, "gpu-clocks").devices).toEqual(["gpu0", "gpu1", "gpu2", "gpu3"]);
  });

  it.each([
    ["device name", { device: "nvidia2", UUID: "GPU-1" }, "gpu2"],
    ["index", { index: "2", uuid: "GPU-1" }, "gpu2"],
    ["place on the bus", { pci_bus_id: "00000000:1A:00.0", UUID: "GPU-1" }, "00000000:1a:00.0"],
  ])("by their %s", (_, labels, device) => {
    const other = Object.fromEntries(
      Object.entries(labels).map(([label, value]) => [
        label,
        value.replace(/2$|1A/, (old) => (old === "2" ? "3" : "3B")),
      ]),
    );
    const fleet = fleetOf(3, () => [
      { name: "DCGM_FI_DEV_GPU_TEMP", labels, at: () => 60 },
      { name: "DCGM_FI_DEV_GPU_TEMP", labels: other, at: () => 61 },
    ]);
    expect(gridOf(fleet, "gpu-temperature").devices[0]).toBe(device);
  });
});

describe("counters of time", () => {
  it("of a whole machine's idle cores say as much as those of each core", () => {
    const fleet = fleetOf(4, (machine) => [
      {
        name: "node_cpu_seconds_total",
        labels: { mode: "idle" },
        type: "counter",
        at: (atS) => atS * (machine === 1 ? 16 : 63.5),
      },
    ]);
    const usage = gridOf(fleet, "cpu-usage");
    expect(lastOf(usage, 1)).toBeCloseTo(0.75, 2);
    expect(lastOf(usage, 0)).toBeLessThan(0.02);
  });

  it.each([1e6, 1e9])("may be in parts of a second (%d in one)", (unit) => {
    const fleet = fleetOf(4, (machine) =>
      ["0", "1"].map((gpu) => ({
        name: "DCGM_FI_DEV_THERMAL_VIOLATION",
        labels: { gpu },
        type: "counter",
        at: (atS) => 7 * unit + unit * atS * (machine === 2 && gpu === "1" ? 0.4 : 0),
      })),
    );
    const { high, ticks } = gridOf(fleet, "gpu-thermal-violation");
    expect(high[3 * ticks - 1]).toBeCloseTo(0.4, 5);
    expect(high[ticks - 1]).toBe(0);
  });
});

describe("old news", () => {
  const gpus = ["0", "1", "2"];
  const xid = (of: (machine: number, gpu: string, atS: number) => number) =>
    findMachines(
      fleetOf(8, (machine) =>
        gpus.map((gpu) => ({
          name: "DCGM_FI_DEV_XID_ERRORS",
          labels: { gpu },
          at: (atS) => of(machine, gpu, atS),
        })),
      ),
    ).faulty;

  it("is the Xid that a GPU showed at first, also when its exporter was away for a while", () => {
    const isAway = (atS: number): boolean => atS >= 500 && atS < 700;
    expect(xid((m, gpu, atS) => (m === 5 && gpu === "1" && !isAway(atS) ? 79 : 0))).toEqual([]);
  });

  it("is none once another Xid follows, whatever its number", () => {
    const found = xid((m, gpu, atS) => (m === 5 && gpu === "1" ? (atS < 600 ? 79 : 48) : 0));
    expect(found).toMatchObject([{ machine: "node5", metric: "xid-errors" }]);
    expect(found[0]!.why).toContain("Xid 48 on GPU 1");
  });

  it("is what an error counter had before its exporter started anew", () => {
    const errors = (later: number) =>
      findMachines(
        fleetOf(8, (machine) =>
          gpus.map((gpu) => ({
            name: "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
            labels: { gpu },
            type: "counter",
            at: (atS) =>
              machine !== 5 || gpu !== "1"
                ? 0
                : atS >= 600 && atS < 640
                  ? 0
                  : atS < 600
                    ? 4
                    : later,
          })),
        ),
      ).faulty.map(({ machine }) => machine);
    expect(errors(4)).toEqual([]);
    expect(errors(6)).toEqual(["node5"]);
  });
});

describe("profiling metrics", () => {
  /** Eight machines that do the same; `profiled` is what one of them shows, undefined for nothing at all. */
  const fleetWith = (
    machines: number,
    profiled: (machine: number, value: number) => number | undefined,
    watts: (machine: number) => number = () => 600,
  ): Fleet =>
    fleetOf(machines, (machine) => {
      const sampled = (name: string, level: number, spread: number): Sampled => ({
        name,
        labels: { gpu: "0" },
        at: (atS) => level + spread * Math.sin(12.9898 * (machine + 1) * (atS + 1)),
      });
      const own = [
        sampled("DCGM_FI_PROF_SM_ACTIVE", 0.8, 0.03),
        sampled("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.4, 0.02),
        sampled("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.97, 0.01),
        sampled("DCGM_FI_PROF_DRAM_ACTIVE", 0.4, 0.02),
        sampled("DCGM_FI_PROF_NVLINK_TX_BYTES", 5e10, 1e9),
        sampled("DCGM_FI_PROF_NVLINK_RX_BYTES", 5e10, 1e9),
      ].flatMap((one) =>
        profiled(machine, 1) === undefined
          ? []
          : [{ ...one, at: (atS: number) => profiled(machine, one.at(atS))! }],
      );
      return [
        ...own,
        sampled("DCGM_FI_DEV_GPU_UTIL", 98, 1),
        sampled("DCGM_FI_DEV_POWER_USAGE", watts(machine), 12),
      ];
    });

  it.each([4, 8, 17])(
    "that read 0 from the start on one of %s machines are its exporter's",
    (n) => {
      const report = findMachines(fleetWith(n, (machine, value) => (machine === 2 ? 0 : value)));
      expect(report.faulty).toEqual([]);
      expect(new Set(report.telemetry.map(({ machine }) => machine))).toEqual(new Set(["node2"]));
      expect(report.telemetry[0]!.why).toMatch(/profiling does not run there/);
    },
  );

  it("that read 0 where the GPU draws no power either are the GPU's", () => {
    const zero = (machine: number, value: number): number => (machine === 2 ? 0 : value);
    const report = findMachines(fleetWith(8, zero, (machine) => (machine === 2 ? 300 : 600)));
    expect(report.faulty).toMatchObject([{ machine: "node2" }]);
  });

  it("that one machine lacks are named, and nobody is accused", () => {
    const report = findMachines(
      fleetWith(8, (machine, value) => (machine === 5 ? undefined : value)),
    );
    expect(report.faulty).toEqual([]);
    expect(report.missing.join()).toMatch(
      /node5 has no samples of SM activity, .* and could not be compared in that/,
    );
  });
});

describe("pods of exporters that nothing joins to a machine", () => {
  const POD = "dcgm-exporter-fx7k2";
  const fleet = fleetOf(6, (machine) => [
    {
      name: "DCGM_FI_DEV_SM_CLOCK",
      labels: { gpu: "0", ...(machine === 3 ? { instance: POD, pod: POD } : {}) },
      at: (atS) => (machine === 3 && atS >= 600 ? 700 : 1755) + (atS % 7),
    },
    {
      name: "node_load1",
      labels: {},
      at: (atS) => 20 + (atS % 3),
    },
  ]);

  it("are called pods, and the machines without GPU metrics are not said to idle", () => {
    const report = findMachines(fleet);
    expect(report.faulty).toMatchObject([{ machine: POD }]);
    expect(report.faulty[0]!.why).toMatch(/of the machine that this exporter's pod runs on/);
    const missing = report.missing.join("\n");
    expect(missing).toMatch(`${POD} is the pod of an exporter`);
    expect(missing).toMatch(/node3, without GPU metrics/);
    expect(missing).not.toMatch(/took no part/);
  });
});
