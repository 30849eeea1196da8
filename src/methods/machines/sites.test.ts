/** Fleets as sites have them: coarse samples, late scrapes, exporters that restart, counters that name the cause. */
import { describe, expect, it } from "vitest";
import { MetricSetBuilder } from "../../ingest/metrics/metric-set-builder.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MachineReport } from "../../model/machine-report.ts";
import { alignFleet } from "./align.ts";
import { explainMachine } from "./explain.ts";
import { findMachines } from "./find-machines.ts";
import { withoutWarmUp } from "./restarts.ts";
import { EPOCH_S, testFleet, type Change } from "../../../test/support/methods/fleet.ts";

const everything = testFleet({ seconds: 60 }).grids.map(({ metric }) => metric);
const names = ({ faulty }: MachineReport): string[] => faulty.map(({ machine }) => machine);
const gpuMetrics = everything.filter((metric) => metric.startsWith("gpu-"));

/** All that an exporter says of a machine, gone between two times. */
function silent(
  machine: number,
  fromS: number,
  metrics: readonly string[],
  toS = Infinity,
): Change[] {
  return metrics.map((metric) => ({ machine, metric, fromS, toS, to: () => NaN }));
}

/** A state of every machine's GPUs: `of` says what GPU 2 shows, the others show `usual`. */
function state(
  metric: string,
  like: Fleet,
  usual: number,
  of: (machine: number, atS: number) => number,
): MetricGrid {
  const grid = like.grids.find(({ metric: id }) => id === "gpu-clocks")!;
  const { ticks, stepS } = grid;
  const mean = Float32Array.from({ length: like.machines.length * ticks }, (_, at) =>
    of(Math.floor(at / ticks), (at % ticks) * stepS),
  );
  const device = new Uint8Array(mean.length).fill(2);
  return {
    ...grid,
    metric,
    source: "DCGM_FI",
    mean,
    low: mean.map((value) => Math.min(value, usual)),
    high: mean.map((value) => Math.max(value, usual)),
    lowDevice: device,
    highDevice: device,
  };
}

describe("silence", () => {
  it("is no scrape that is late at the end of the data, nor one that the job goes on without", () => {
    const shape = { seconds: 1200, stepS: 30 };
    const found = (fromS: number): string[] =>
      names(findMachines(testFleet({ ...shape, changes: silent(5, fromS, everything) })));
    expect(found(1110)).toEqual([]);
    expect(found(990)).toEqual([]);
    expect(found(900)).toEqual(["node005"]);
  });

  it("of a minute or two is a machine's, where the job stands still with it", () => {
    const waits = (machine: number): Change[] => [
      { machine, metric: "gpu-tensor-core-activity", fromS: 990, to: () => 0 },
      { machine, metric: "gpu-sm-activity", fromS: 990, to: () => 0.1 },
      { machine, metric: "gpu-power-draw", fromS: 990, to: () => 180 },
    ];
    const others = [...Array(16).keys()].filter((m) => m !== 5).flatMap(waits);
    const changes = [...others, ...silent(5, 990, everything)];
    expect(names(findMachines(testFleet({ seconds: 1200, stepS: 15, changes })))).toEqual([
      "node005",
    ]);
  });

  it("is measured by how long the same exporter was away before", () => {
    const before = silent(5, 300, everything, 480);
    const changes = [...before, ...silent(5, 1020, everything)];
    expect(names(findMachines(testFleet({ seconds: 1200, stepS: 15, changes })))).toEqual([]);
  });

  it("of one exporter is the exporter's, while the other goes on", () => {
    const report = findMachines(
      testFleet({ seconds: 1200, stepS: 15, changes: silent(5, 600, gpuMetrics) }),
    );
    expect(names(report)).toEqual([]);
    expect(report.telemetry[0]).toMatchObject({ machine: "node005", metric: "reporting" });
  });

  it("of the GPUs' exporter is a lost GPU's, where the job halted with it", () => {
    const changes = silent(5, 600, gpuMetrics);
    const report = findMachines(testFleet({ seconds: 1200, stepS: 15, haltS: 600, changes }));
    expect(names(report)).toEqual(["node005"]);
  });

  it("of what is known as an exporter's pod alone accuses no machine", () => {
    const fleet = testFleet({ seconds: 1200, stepS: 15, changes: silent(5, 600, everything) });
    const pod = {
      machine: "node005",
      names: ["gpu/dcgm-exporter-d66sz"],
      by: ["pod"],
      isPod: true,
    };
    expect(names(findMachines(fleet))).toEqual(["node005"]);
    const joined = { ...fleet, names: { joined: [pod], disputed: [] } };
    expect(names(findMachines(joined))).toEqual([]);
  });
});

/** Every machine at `share` of its pace from then on. */
function slowJob(fromS: number, toS: number, share: number, machines = 16): Change[] {
  return Array.from({ length: machines }, (_, machine) => ({
    machine,
    metric: "gpu-tensor-core-activity",
    fromS,
    toS,
    to: (value: number) => value * share,
  }));
}

describe("samples of half a minute", () => {
  const shape = { seconds: 1500, stepS: 30 };
  const load: Change = {
    machine: 4,
    metric: "cpu-usage",
    fromS: 700,
    toS: 1030,
    to: (x) => x * 2.2,
  };

  it("show a stray process that holds the job up for five minutes", () => {
    const changes = [load, ...slowJob(700, 1030, 0.8)];
    expect(names(findMachines(testFleet({ ...shape, changes })))).toEqual(["node004"]);
  });

  it("show no fault in a machine that is merely busier while the job runs at full speed", () => {
    expect(names(findMachines(testFleet({ ...shape, changes: [load] })))).toEqual([]);
  });

  it("show a difference that every single one of them is too noisy for", () => {
    const noisy: Change[] = Array.from({ length: 16 }, (_, machine) => ({
      machine,
      metric: "tcp-rdma-throughput",
      fromS: 0,
      to: (x) => x * (1 + 0.12 * Math.sin(1e4 * x)),
    }));
    const half: Change = {
      machine: 9,
      metric: "tcp-rdma-throughput",
      fromS: 700,
      toS: 1120,
      to: (x) => x * 0.5,
    };
    const metrics = ["tcp-rdma-throughput"];
    expect(names(findMachines(testFleet({ ...shape, metrics, changes: noisy })))).toEqual([]);
    expect(
      names(findMachines(testFleet({ ...shape, metrics, changes: [...noisy, half] }))),
    ).toEqual(["node009"]);
  });
});

it("samples of five minutes show no state that lasts where two of them are far off", () => {
  const metrics = ["tcp-rdma-throughput"];
  const accused = (samples: number): string[] => {
    const toS = 30_000 + 300 * samples;
    const change = { machine: 9, metric: metrics[0]!, fromS: 30_000, toS, to: () => 0 };
    const fleet = testFleet({ seconds: 60_000, stepS: 300, metrics, changes: [change] });
    return names(findMachines(fleet, { continuityS: 900 }));
  };
  expect(accused(2)).toEqual([]);
  expect(accused(5)).toEqual(["node009"]);
});

describe("metrics of which nothing is known", () => {
  const own = { "memory-usage": "queue_depth", "disk-usage": "requests", "gpu-clocks": "heap" };
  const busy = (machine: number, metric: keyof typeof own, fromS: number): Change => ({
    machine,
    metric,
    fromS,
    toS: fromS + 600,
    to: (x) => 2 * x,
  });
  const accused = (changes: readonly Change[]): string[] => {
    const fleet = testFleet({ seconds: 6000, stepS: 30, metrics: Object.keys(own), changes });
    const grids = fleet.grids.map((grid) => ({
      ...grid,
      metric: own[grid.metric as keyof typeof own],
    }));
    return names(findMachines({ ...fleet, grids }));
  };

  it("accuse the one machine that is unlike in them", () => {
    expect(accused([busy(3, "memory-usage", 3000)])).toEqual(["node003"]);
  });

  it("accuse nobody where machines stray one after the other, each in another of them", () => {
    const strays = [
      busy(3, "memory-usage", 3000),
      busy(5, "disk-usage", 4000),
      busy(8, "gpu-clocks", 5000),
    ];
    expect(accused(strays)).toEqual([]);
  });
});

describe("an exporter that was restarted", () => {
  it("is not believed until its profiling watch is warm", () => {
    const { grids } = testFleet({
      seconds: 600,
      stepS: 15,
      metrics: ["gpu-tensor-core-activity"],
      changes: silent(3, 300, ["gpu-tensor-core-activity"], 345),
    });
    const prof = { ...grids[0]!, source: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" };
    const { mean, ticks } = withoutWarmUp(prof);
    const seen = (t: number): boolean => !Number.isNaN(mean[3 * ticks + t]!);
    expect([19, 23, 28, 29].map(seen)).toEqual([true, false, false, true]);
    expect(withoutWarmUp(grids[0]!)).toBe(grids[0]);
  });

  it("accuses nobody by profiling fields alone, while all others go on at full speed", () => {
    const changes: Change[] = ["gpu-tensor-core-activity"].map((metric) => ({
      machine: 3,
      metric,
      fromS: 500,
      to: (x) => x * 0.3,
    }));
    const fleet = testFleet({ seconds: 1200, stepS: 15, changes });
    const profiled = {
      ...fleet,
      grids: fleet.grids.map((grid) =>
        grid.metric === "gpu-tensor-core-activity"
          ? { ...grid, source: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" }
          : grid,
      ),
    };
    expect(names(findMachines(profiled))).toEqual([]);
  });
});

describe("counters that name the cause", () => {
  const plain = testFleet({ seconds: 1200, stepS: 15 });
  const whyOf = (grid: MetricGrid): string =>
    findMachines({ ...plain, grids: [...plain.grids, grid] }).faulty[0]?.why ?? "";

  it("are told as an engineer would", () => {
    const width = state("pcie-link-width", plain, 16, (m, atS) => (m === 4 && atS >= 600 ? 8 : 16));
    expect(whyOf(width)).toContain("PCIe link of GPU 2 runs at x8 instead of x16 since 00:10");
    const heat = state("gpu-thermal-throttle", plain, 0, (m, atS) => Number(m === 4 && atS >= 600));
    expect(whyOf(heat)).toContain("GPU 2 is slowed down by heat since 00:10");
    const down = state("link-downed", plain, 0, (m, atS) => (m === 4 && atS >= 600 ? 2 : 0));
    expect(whyOf(down)).toContain("link of GPU 2 went down (2 times)");
  });

  it("do not accuse a GPU that was hot for two minutes", () => {
    const hot = (m: number, atS: number): boolean => m === 4 && atS >= 600 && atS < 720;
    expect(whyOf(state("gpu-thermal-throttle", plain, 0, (m, atS) => Number(hot(m, atS))))).toBe(
      "",
    );
    const replaced = state("link-downed", plain, 0, (m, atS) => Number(hot(m, atS)));
    expect(whyOf(replaced)).not.toBe("");
  });

  it("do not accuse where they count on sound machines as well", () => {
    const replays = state("pcie-replays", plain, 0, (m, atS) => (m === 4 && atS >= 600 ? 400 : 0));
    expect(whyOf(replays)).toBe("");
  });

  it("are read out of bits and out of what counters gained", () => {
    const builder = new MetricSetBuilder();
    for (const [m, hostname] of ["a", "b", "c"].entries()) {
      const labels = new Map([
        ["hostname", hostname],
        ["gpu", "0"],
      ]);
      const reasons = builder.labelled("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", labels, "gauge");
      const errors = builder.labelled("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", labels, "counter");
      for (let t = 0; t < 10; t++) {
        builder.add(reasons, EPOCH_S + 15 * t, m === 1 ? 0x44 : 0x4);
        builder.add(errors, EPOCH_S + 15 * t, 7 + (m === 1 && t > 4 ? 2 : 0));
      }
    }
    const { grids } = alignFleet([builder.finish()]);
    const last = (metric: string): number[] => {
      const { mean, ticks } = grids.find((grid) => grid.metric === metric)!;
      return [0, 1, 2].map((m) => mean[(m + 1) * ticks - 1]!);
    };
    expect(last("gpu-thermal-throttle")).toEqual([0, 1, 0]);
    expect(last("gpu-power-brake")).toEqual([0, 0, 0]);
    expect(last("ecc-double-bit-errors")).toEqual([0, 2, 0]);
  });
});

it("explains a machine under any of its names", () => {
  const fleet = testFleet({ seconds: 1200, stepS: 15, changes: silent(3, 300, ["cpu-usage"]) });
  const names4 = { machine: "node003", names: ["10.0.0.3"], by: ["instance"], isPod: false };
  const named = { ...fleet, names: { joined: [names4], disputed: ["10.9.9.9"] } };
  const report = findMachines(named);
  const explained = explainMachine(named, report, "10.0.0.3")!;
  expect(explained).toMatchObject({ machine: "node003", peers: 15, names: names4 });
  expect(explained.metrics.map(({ metric }) => metric)).toEqual(everything);
  const power = explained.metrics.find(({ metric }) => metric === "gpu-power-draw")!;
  expect(power.value).toBeCloseTo(power.peers!.middle, -2);
  expect(explained.leftOut.map(({ what }) => what).join()).toMatch(/10\.9\.9\.9/);
  expect(explainMachine(named, report, "node999")).toBeNull();
});

describe("a machine with work of its own", () => {
  const idle = (fromS: number, toS: number): Change[] =>
    [
      ["gpu-duty-cycle", 0],
      ["gpu-power-draw", 70],
      ["gpu-tensor-core-activity", 0],
      ["gpu-graphics-engine-activity", 0],
      ["gpu-clocks", 345],
      ["gpu-memory-used", 12_000],
    ].map(([metric, value]) => ({
      machine: 5,
      metric: metric as string,
      fromS,
      toS,
      // No sensor reads the same watts all the time.
      to: (x) => (value as number) + (metric === "gpu-power-draw" ? x % 1 : 0),
    }));
  const found = (changes: readonly Change[]): string[] =>
    names(findMachines(testFleet({ seconds: 1800, stepS: 15, changes })));

  it("rests while the others go on, and works again", () => {
    expect(found([...idle(300, 600), ...idle(900, 1200)])).toEqual([]);
  });

  it("held nothing for a minute while the others went on: its processes had ended", () => {
    const freed: Change = {
      machine: 5,
      metric: "gpu-memory-used",
      fromS: 900,
      toS: 1000,
      to: () => 4,
    };
    const slow: Change = { ...freed, metric: "gpu-clocks", toS: 1800, to: (x) => 0.7 * x };
    expect(found([slow])).toEqual(["node005"]);
    expect(found([freed, slow])).toEqual([]);
  });

  it("is a suspect where it stopped for good", () => {
    expect(found(idle(900, 1800))).toEqual(["node005"]);
  });
});
