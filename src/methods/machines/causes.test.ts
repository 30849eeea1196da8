/** What a difference between machines means: a fault, another job, a part of the iteration, or old news. */
import { describe, expect, it } from "vitest";
import { MetricSetBuilder } from "../../ingest/metrics/metric-set-builder.ts";
import { isCounterName } from "../../model/metric-catalog.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MachineReport } from "../../model/machine-report.ts";
import { alignFleet } from "./align.ts";
import { findMachines } from "./find-machines.ts";
import { frozenSpans } from "./frozen.ts";
import { EPOCH_S, testFleet, type Change } from "../../../test/support/methods/fleet.ts";
import { viewsOf } from "./views.ts";

const SICK = 5;
const shape = { seconds: 1200, stepS: 15 };
const names = ({ faulty }: MachineReport): string[] => faulty.map(({ machine }) => machine);
const found = (changes: readonly Change[], more = {}): string[] =>
  names(findMachines(testFleet({ ...shape, ...more, changes })));

/** The whole job at 70 % of its pace from then on. */
const slowJob = (fromS: number): Change[] =>
  Array.from({ length: 16 }, (_, machine) => ({
    machine,
    metric: "gpu-tensor-core-activity",
    fromS,
    to: (x) => 0.7 * x,
  }));

/** One value for each machine and time, of no device. */
function plainGrid(
  metric: string,
  like: Fleet,
  of: (machine: number, atS: number) => number,
): MetricGrid {
  const grid = like.grids.find(({ metric: id }) => id === "cpu-usage")!;
  const mean = Float32Array.from(grid.mean, (_, at) =>
    of(Math.floor(at / grid.ticks), (at % grid.ticks) * grid.stepS),
  );
  return { ...grid, metric, mean, low: mean, high: mean };
}

describe("counters", () => {
  it("are known by their names", () => {
    for (const name of [
      "node_infiniband_port_errors_received_total",
      "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
      "DCGM_FI_DEV_POWER_VIOLATION",
      "DCGM_FI_DEV_RETIRED_SBE",
    ])
      expect(isCounterName(name), name).toBe(true);
    for (const name of ["DCGM_FI_DEV_GPU_TEMP", "node_load1", "total_power"])
      expect(isCounterName(name), name).toBe(false);
  });

  it("of a table's own words say what they gain, and any number of events is believed", () => {
    const builder = new MetricSetBuilder();
    for (const [m, machine] of ["a", "b", "c", "d"].entries()) {
      const rows = builder.series("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", machine, "gpu0");
      const wait = builder.series("node_infiniband_port_transmit_wait_total", machine, "mlx5_0");
      for (let t = 0; t < 40; t++) {
        builder.add(rows, EPOCH_S + 15 * t, m === 1 ? 1 : 0);
        builder.add(wait, EPOCH_S + 15 * t, 15 * t * (m === 1 ? 7e6 : 5e4));
      }
    }
    const fleet = alignFleet([builder.finish()]);
    const last = (metric: string): number[] => {
      const { mean, ticks } = fleet.grids.find((grid) => grid.metric === metric)!;
      return [0, 1, 2, 3].map((m) => mean[(m + 1) * ticks - 1]!);
    };
    expect(last("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS")).toEqual([0, 0, 0, 0]);
    expect(last("port-transmit-wait")).toEqual([5e4, 7e6, 5e4, 5e4]);
  });

  it("of errors accuse the machine that alone has them when the job slows down", () => {
    const errors = (fleet: Fleet, who: readonly number[], perS = 0.2): Fleet => ({
      ...fleet,
      grids: [
        ...fleet.grids,
        plainGrid("nvlink-crc-errors", fleet, (m, atS) =>
          who.includes(m) ? Math.max(0, perS * (atS - 500)) : 0,
        ),
      ],
    });
    const slow = testFleet({ ...shape, changes: slowJob(500) });
    expect(names(findMachines(errors(slow, [SICK])))).toEqual(["node005"]);
    expect(names(findMachines(errors(slow, [SICK, 9])))).toEqual([]);
    expect(names(findMachines(errors(testFleet(shape), [SICK])))).toEqual([]);
    // More than the maker's own check allows by far.
    expect(names(findMachines(errors(testFleet(shape), [SICK], 20)))).toEqual(["node005"]);
    expect(names(findMachines(errors(testFleet(shape), [SICK, 9], 20)))).toEqual([]);
  });
});

describe("packets that one machine alone sends anew", () => {
  const anew = (who: readonly number[], perS: number): string[] => {
    const fleet = testFleet(shape);
    const grid = plainGrid("rdma-retransmissions", fleet, (m, atS) =>
      who.includes(m) && atS >= 500 ? perS : 0.5,
    );
    return names(findMachines({ ...fleet, grids: [...fleet.grids, grid] }));
  };

  it("accuse it by their number, though the job is not seen to slow down", () => {
    expect(anew([SICK], 60)).toEqual(["node005"]);
    expect(anew([SICK], 7)).toEqual([]);
    expect(anew([SICK, 9], 60)).toEqual([]);
  });
});

describe("a duty cycle that is low now and then", () => {
  // Samples meet the gap between two iterations every other time.
  const aliased = (fromS: number): Change => {
    let count = 0;
    return {
      machine: SICK,
      metric: "gpu-duty-cycle",
      fromS,
      to: (x) => (count++ % 8 < 4 ? 10 : x),
    };
  };

  it("is the sampling's, where the job goes on at full speed", () => {
    expect(found([aliased(400)])).toEqual([]);
  });

  it("is a fault where the job slowed down with it", () => {
    let count = 0;
    const gaps: Change = { ...aliased(500), to: () => 50 + (count++ % 11) };
    expect(found([gaps, ...slowJob(500)])).toEqual(["node005"]);
  });
});

describe("a machine that differs in what a job decides", () => {
  const other = (fromS: number): Change[] => [
    { machine: SICK, metric: "gpu-memory-used", fromS, to: (x) => 0.5 * x },
    { machine: SICK, metric: "tcp-rdma-throughput", fromS, to: (x) => 0.3 * x },
    { machine: SICK, metric: "gpu-tensor-core-activity", fromS, to: (x) => 0.6 * x },
  ];

  it("from the first sample on is another job's", () => {
    expect(found(other(0))).toEqual([]);
  });

  it("from some time on is faulty, and so is what no job decides from the first sample on", () => {
    expect(found(other(500))).toEqual(["node005"]);
    const clock = { machine: SICK, metric: "gpu-clocks", fromS: 0, to: (x: number) => 0.7 * x };
    expect(found([...other(0), clock])).toEqual(["node005"]);
  });

  it("is the job's where the job's file says so", () => {
    const fleet = testFleet({ ...shape, changes: other(0) });
    expect(names(findMachines({ ...fleet, roles: ["stage 0"] }))).toEqual(["node005"]);
    expect(names(findMachines({ ...fleet, isJob: true }))).toEqual(["node005"]);
  });

  it("is another job's where its GPUs hold as much as those of nobody else", () => {
    const host: Change = { machine: SICK, metric: "memory-usage", fromS: 0, to: (x) => 0.4 * x };
    const held: Change = { ...host, metric: "gpu-memory-used", to: (x) => 0.9 * x };
    expect(found([host])).toEqual(["node005"]);
    expect(found([host, held])).toEqual([]);
  });
});

describe("a GPU that stops while all others wait in a collective", () => {
  const idle: Change[] = [
    { machine: SICK, metric: "gpu-duty-cycle", device: 2, fromS: 600, to: () => 0 },
    { machine: SICK, metric: "gpu-graphics-engine-activity", device: 2, fromS: 600, to: () => 0 },
    { machine: SICK, metric: "gpu-power-draw", device: 2, fromS: 600, to: () => 101.25 },
  ];

  it("is the culprit, though its power stands still to the last digit", () => {
    expect(found(idle, { haltS: 600 })).toEqual(["node005"]);
  });

  it("serves no old value: it never drew so little before", () => {
    const fleet = testFleet({ ...shape, changes: idle, haltS: 600 });
    const views = fleet.grids.flatMap((grid) => viewsOf(fleet, grid, []));
    expect(frozenSpans(SICK, views)).toEqual([]);
  });
});

describe("a machine that waits for its disk", () => {
  const waits = (fleet: Fleet): Fleet => ({
    ...fleet,
    grids: [
      ...fleet.grids,
      plainGrid("disk-busy", fleet, (m, atS) => (m === SICK && atS >= 500 ? 0.97 : 0.03)),
      plainGrid("blocked-processes", fleet, (m, atS) => (m === SICK && atS >= 500 ? 14 : 0)),
    ],
  });

  it("is named when the job waits with it", () => {
    const report = findMachines(waits(testFleet({ ...shape, changes: slowJob(500) })));
    expect(names(report)).toEqual(["node005"]);
    expect(report.faulty[0]!.why).toContain("disk");
  });
});

describe("a file system", () => {
  const usage = (of: (m: number, t: number) => number): Fleet => {
    const like = testFleet({ ...shape, machines: 4 });
    const builder = new MetricSetBuilder();
    for (const [m, machine] of like.machines.entries()) {
      const labels = new Map([
        ["instance", machine],
        ["mountpoint", "/local"],
        ["fstype", "ext4"],
      ]);
      const free = builder.labelled("node_filesystem_avail_bytes", labels);
      const whole = builder.labelled("node_filesystem_size_bytes", labels);
      for (let t = 0; t < 80; t++) {
        builder.add(free, EPOCH_S + 15 * t, 1e12 * (1 - of(m, t)));
        builder.add(whole, EPOCH_S + 15 * t, 1e12);
      }
    }
    return { ...like, grids: [...like.grids, ...alignFleet([builder.finish()]).grids] };
  };

  it("that became full accuses its machine, and says which it is", () => {
    const { faulty } = findMachines(usage((m, t) => (m === 2 && t > 40 ? 1 : 0.5)));
    expect(faulty.map(({ machine }) => machine)).toEqual(["node002"]);
    expect(faulty[0]!.why).toContain("file system is full since 00:10");
  });

  it("that only fills, or was full from the first sample on, accuses nobody", () => {
    expect(names(findMachines(usage((m, t) => (m === 2 && t > 40 ? 0.95 : 0.5))))).toEqual([]);
    expect(names(findMachines(usage((m) => (m === 2 ? 1 : 0.5))))).toEqual([]);
  });
});

describe("a machine that is busier than its peers", () => {
  const busy: Change = { machine: SICK, metric: "cpu-usage", fromS: 300, to: (x) => 4 * x };

  it("harms nobody while its GPUs are as busy as the others'", () => {
    expect(found([busy])).toEqual([]);
  });

  it("holds the job up where its GPUs alone have gaps", () => {
    let count = 0;
    const gaps: Change = {
      machine: SICK,
      metric: "gpu-duty-cycle",
      fromS: 300,
      to: (x) => (count++ % 16 < 4 ? 40 + (count % 3) : x),
    };
    expect(found([busy, gaps])).toEqual(["node005"]);
  });
});

describe("a process that came onto a GPU", () => {
  const memory = (machine: number): Change => ({
    machine,
    metric: "gpu-memory-used",
    fromS: 600,
    device: 2,
    to: (x) => x + 3000,
  });
  const hot: Change = {
    machine: SICK,
    metric: "gpu-temperature",
    fromS: 600,
    device: 2,
    to: (x) => x + 9,
  };

  it("takes memory there alone, and makes it hotter", () => {
    const { faulty } = findMachines(testFleet({ ...shape, changes: [memory(SICK), hot] }));
    expect(faulty.map(({ machine }) => machine)).toEqual(["node005"]);
    expect(faulty[0]!.why).toMatch(/memory in use on GPU 2 rose by [23],\d+ MiB at once/);
  });

  it("is none where several take more, or the GPU does no more than before", () => {
    expect(found([memory(SICK), memory(9), hot])).toEqual([]);
    expect(found([memory(SICK)])).toEqual([]);
  });
});

describe("a machine that became hot", () => {
  const hot: Change = { machine: SICK, metric: "gpu-temperature", fromS: 300, to: (x) => x + 24 };

  it("is in a warm place while its clock stays", () => {
    expect(found([hot])).toEqual([]);
  });

  it("is throttled where its clock fell with it", () => {
    const slow: Change = { machine: SICK, metric: "gpu-clocks", fromS: 300, to: (x) => 0.92 * x };
    expect(found([hot, slow])).toEqual(["node005"]);
  });
});

describe("a fault that began soon after the data", () => {
  it("is no nature of the machine", () => {
    const slow: Change = { machine: SICK, metric: "gpu-clocks", fromS: 120, to: (x) => 0.87 * x };
    expect(found([slow])).toEqual(["node005"]);
  });
});
