/** A job that all machines wait in: who it waits for, and who only is there. */
import { describe, expect, it } from "vitest";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MachineReport } from "../../model/machine-report.ts";
import { findMachines } from "./find-machines.ts";
import { causeOf } from "./machine-method.ts";
import { testFleet, type Change } from "../../../test/support/methods/fleet.ts";

const SICK = 5;
const FROM_S = 700;
const shape = { seconds: 1500, stepS: 30 };
const names = ({ faulty }: MachineReport): string[] => faulty.map(({ machine }) => machine);
const change = (
  machine: number,
  metric: string,
  to: Change["to"],
  fromS = FROM_S,
  device?: number,
): Change => ({ machine, metric, fromS, to, ...(device === undefined ? {} : { device }) });

/** Everybody but `except` waits for a part of the time. */
const waiting = (share: number, except: readonly number[] = []): Change[] =>
  Array.from({ length: 16 }, (_, machine) => machine)
    .filter((machine) => !except.includes(machine))
    .flatMap((machine) => [
      change(machine, "gpu-tensor-core-activity", (x) => share * x),
      change(machine, "gpu-power-draw", (x) => (0.2 + 0.8 * share) * x),
    ]);

/** One value for each machine and time, of no device. */
function withGrid(
  fleet: Fleet,
  metric: string,
  of: (machine: number, atS: number) => number,
): Fleet {
  const like = fleet.grids.find(({ metric: id }) => id === "cpu-usage")!;
  const mean = Float32Array.from(like.mean, (_, at) =>
    of(Math.floor(at / like.ticks), (at % like.ticks) * like.stepS),
  );
  const grid: MetricGrid = { ...like, metric, mean, low: mean, high: mean };
  return { ...fleet, grids: [...fleet.grids, grid] };
}

describe("a job that slowed down", () => {
  it("waits for the machine that alone changed then, though by less than would accuse it in a job that runs", () => {
    const slight = change(SICK, "gpu-clocks", (x) => 0.92 * x);
    const noisy = Array.from({ length: 16 }, (_, machine) =>
      change(machine, "gpu-clocks", (x) => x * (1 + 0.015 * Math.sin(1e3 * x)), 0),
    );
    const slow = testFleet({ ...shape, changes: [...noisy, slight, ...waiting(0.8)] });
    expect(names(findMachines(slow))).toEqual(["node005"]);
    const fast = testFleet({ ...shape, changes: [...noisy, slight] });
    expect(names(findMachines(fast))).toEqual([]);
  });

  it("on all machines alike accuses nobody", () => {
    for (const seed of [1, 2, 3, 4])
      expect(names(findMachines(testFleet({ ...shape, seed, changes: waiting(0.7) })))).toEqual([]);
  });

  it.each([
    ["network-drops", 40, 0, "network-slow"],
    ["rdma-port-errors", 12, 0, "network-slow"],
    ["cpu-pressure", 0.6, 0.01, "cpu-stall"],
    ["io-pressure", 0.5, 0.01, "storage"],
    ["gpu-power-violation", 0.8, 0.05, "gpu-slow"],
    ["pfc-rx-packet-rate", 3000, 20, "network-slow"],
  ])("is held up by the one that alone has %s", (metric, sick, usual, cause) => {
    const value = (machine: number, atS: number): number =>
      (machine === SICK && atS >= FROM_S ? sick : usual) * (1 + 0.02 * Math.sin(machine + atS));
    const slow = findMachines(
      withGrid(testFleet({ ...shape, changes: waiting(0.75) }), metric, value),
    );
    expect(names(slow)).toEqual(["node005"]);
    expect(causeOf(slow.faulty[0]!)).toBe(cause);
    expect(names(findMachines(withGrid(testFleet(shape), metric, value)))).toEqual([]);
  });
});

describe("a GPU that works on while the others wait", () => {
  const more = [change(SICK, "gpu-power-draw", (x) => 1.1 * x, FROM_S, 2)];

  it("is shared with another process where it does more than before", () => {
    const changes = [...waiting(0.6, [SICK]), ...more];
    const [faulty] = findMachines(testFleet({ ...shape, changes })).faulty;
    expect(faulty).toMatchObject({ machine: "node005", metric: "shared-gpu" });
    expect(causeOf(faulty!)).toBe("platform");
    expect(faulty!.why).toContain("another process shares it");
  });

  it("is slow where its clock fell", () => {
    const changes = [
      ...waiting(0.6, [SICK]),
      ...more,
      change(SICK, "gpu-clocks", (x) => 0.6 * x, FROM_S, 2),
    ];
    const [faulty] = findMachines(testFleet({ ...shape, changes })).faulty;
    expect(faulty!.machine).toBe("node005");
    expect(causeOf(faulty!)).toBe("gpu-slow");
  });
});

describe("machines beside the job", () => {
  const idle = (machine: number, fromS = 0): Change[] => [
    change(machine, "gpu-duty-cycle", () => 0, fromS),
    change(machine, "gpu-graphics-engine-activity", () => 0, fromS),
    change(machine, "gpu-power-draw", (x) => 90 + x / 100, fromS),
    change(machine, "gpu-tensor-core-activity", () => 0, fromS),
    change(machine, "gpu-clocks", () => 345, fromS),
    change(machine, "tcp-rdma-throughput", () => 0, fromS),
  ];

  it("that idle from the first sample are neither accused nor peers, be they the most", () => {
    const spares = [0, 1, 2, 3, 6, 7, 8, 9, 10];
    const changes = [
      ...spares.flatMap((machine) => idle(machine)),
      change(SICK, "gpu-clocks", (x) => 0.6 * x),
    ];
    const report = findMachines(testFleet({ ...shape, changes }));
    expect(names(report)).toEqual(["node005"]);
    expect(report.missing.join()).toContain("took no part in the job");
  });

  it("that worked and then stopped are suspects", () => {
    const report = findMachines(testFleet({ ...shape, changes: idle(SICK, FROM_S) }));
    expect(names(report)).toEqual(["node005"]);
  });

  it.each(["cpu-usage", "memory-usage", "tcp-throughput"])(
    "that are merely busier by %s harm nobody while the job runs as before",
    (metric) => {
      const changes = [change(SICK, metric, (x) => 3 * x + 1e-3, 300)];
      expect(names(findMachines(testFleet({ ...shape, seconds: 2400, changes })))).toEqual([]);
    },
  );
});
