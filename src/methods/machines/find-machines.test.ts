import { describe, expect, it } from "vitest";
import type { MetricGrid } from "../../model/fleet.ts";
import { findMachines } from "./find-machines.ts";
import { EPOCH_S, testFleet, type Change } from "../../../test/support/methods/fleet.ts";
import { few } from "../../../test/support/cases.ts";

const names = (report: ReturnType<typeof findMachines>): string[] =>
  report.faulty.map(({ machine }) => machine);

/** Its process is gone: Minder's commonest picture. */
const gone = (machine: number, fromS: number, toS = Infinity): Change[] => [
  { machine, metric: "cpu-usage", fromS, toS, to: (x) => x * 0.08 },
  { machine, metric: "gpu-duty-cycle", fromS, toS, to: () => 0 },
  { machine, metric: "gpu-power-draw", fromS, toS, to: (x) => 70 + x / 100 },
  { machine, metric: "memory-usage", fromS, toS, to: (x) => x * 0.3 },
];
const surge = (machine: number, fromS: number, times = 4000): Change => ({
  machine,
  metric: "pfc-tx-packet-rate",
  fromS,
  to: (x) => 10 + x * times,
});
const nothing = (): number => NaN;
const everything = testFleet({ machines: 3, seconds: 10 }).grids.map(({ metric }) => metric);

describe("healthy jobs", () => {
  it.each(few([4, 300, 16, 8, 64], 2))("of %i machines accuse nobody", (machines) => {
    for (const seed of machines > 50 ? [1] : few([1, 2, 3], 1)) {
      const report = findMachines(testFleet({ machines, seed, gpus: 2, seconds: 600 }));
      expect(names(report)).toEqual([]);
      expect(report.telemetry).toEqual([]);
    }
  });

  it("with stages of different load accuse no stage", () => {
    const stageFactor = (stage: number): number => (stage === 3 ? 0.5 : 1);
    for (const stages of few([4, 8], 1)) {
      const report = findMachines(testFleet({ machines: 16, stages, stageFactor }));
      expect(names(report)).toEqual([]);
    }
  });

  it("that pause for a checkpoint accuse neither the rest nor the machine that writes it", () => {
    const fromS = 400;
    const toS = 560;
    const changes: Change[] = [
      { machine: 0, metric: "cpu-usage", fromS, toS, to: (x) => x * 3 },
      { machine: 0, metric: "tcp-throughput", fromS, toS, to: (x) => x * 50 },
      { machine: 0, metric: "memory-usage", fromS, toS, to: (x) => x * 1.6 },
    ];
    const report = findMachines(testFleet({ changes, pauses: [[fromS, toS]] }));
    expect(names(report)).toEqual([]);
    expect(report.phases).toMatchObject([{ what: "pause" }]);
  });

  it("list a fluctuation that does not last as jitter", () => {
    const change: Change = {
      machine: 5,
      metric: "gpu-power-draw",
      fromS: 300,
      toS: 380,
      to: (x) => x / 2,
    };
    const report = findMachines(testFleet({ changes: [change] }));
    expect(names(report)).toEqual([]);
    expect(report.jitter.map(({ machine, metric }) => [machine, metric])).toEqual([
      ["node005", "gpu-power-draw"],
    ]);
  });
});

describe("a faulty machine", () => {
  it.each(few([4, 6, 16, 200], 2))("is found among %i", (machines) => {
    const machine = machines - 2;
    const changes = gone(machine, 600);
    const report = findMachines(testFleet({ machines, haltS: 602, gpus: 2, changes }));
    expect(names(report)).toEqual([`node${String(machine).padStart(3, "0")}`]);
    const [faulty] = report.faulty;
    expect(faulty!.sinceS - EPOCH_S).toBeGreaterThanOrEqual(598);
    expect(faulty!.sinceS - EPOCH_S).toBeLessThanOrEqual(604);
    expect(faulty!.untilS).toBeNull();
  });

  it("is found among stages of one and two machines by its change against its own past", () => {
    for (const stages of [8, 4]) {
      const changes = gone(3, 600);
      const report = findMachines(
        testFleet({ machines: 8, stages, haltS: 602, changes, stageFactor: (s) => 1 - 0.06 * s }),
      );
      expect(names(report)).toEqual(["node003"]);
    }
  });

  it("is found when it was faulty all the time", () => {
    const report = findMachines(testFleet({ changes: gone(7, 0), machines: 32 }));
    expect(names(report)).toEqual(["node007"]);
  });

  it("is found when it is faulty for most of the time, and not accused of the time before", () => {
    const report = findMachines(testFleet({ changes: [surge(2, 250)], machines: 32 }));
    expect(names(report)).toEqual(["node002"]);
    expect(report.faulty[0]!.sinceS - EPOCH_S).toBeCloseTo(250, -1);
    expect(report.faulty[0]!.deviations[0]!.direction).toBe("high");
  });

  it("is named with the one GPU that is unlike", () => {
    const changes: Change[] = [
      { machine: 4, device: 2, metric: "gpu-clocks", fromS: 500, to: () => 1000 },
      { machine: 4, device: 2, metric: "gpu-temperature", fromS: 500, to: () => 88 },
    ];
    const report = findMachines(testFleet({ changes }));
    expect(names(report)).toEqual(["node004"]);
    expect(report.faulty[0]!.deviations.every(({ device }) => device === "gpu2")).toBe(true);
  });

  it("shows at coarse sampling as well", () => {
    for (const stepS of few([5, 15, 30, 60], 2)) {
      const changes = gone(9, 1200);
      const report = findMachines(testFleet({ changes, haltS: 1205, stepS, seconds: 1800 }));
      expect(names(report)).toEqual(["node009"]);
    }
  });

  it("is told from those that followed it", () => {
    const followers = [3, 4, 5].map((machine, i) => surge(machine, 430 + 20 * i, 200));
    const report = findMachines(
      testFleet({ changes: [surge(2, 400), ...followers], machines: 32 }),
    );
    expect(names(report)).toEqual(["node002"]);
    expect(report.followers.map(({ machine }) => machine)).toEqual([
      "node003",
      "node004",
      "node005",
    ]);
  });

  it("need not be the only one", () => {
    const changes = [...gone(1, 500), ...gone(11, 530)];
    const report = findMachines(testFleet({ changes, haltS: 501 }));
    expect(names(report).toSorted()).toEqual(["node001", "node011"]);
    expect(report.faulty.find(({ machine }) => machine === "node001")!.order).toBe(1);
    expect(report.faulty.find(({ machine }) => machine === "node011")!.order).toBe(2);
  });

  it("may be 32 of 600, when a switch restarts", () => {
    const changes = Array.from({ length: 32 }, (_, i) => surge(64 + i, 300));
    const metrics = ["pfc-tx-packet-rate", "gpu-tensor-core-activity"];
    const report = findMachines(testFleet({ changes, machines: 600, metrics, seconds: 700 }));
    expect(names(report)).toHaveLength(32);
  });
});

describe("absence", () => {
  it("of all samples of a machine is a fault, within two intervals and the continuity", () => {
    const dead = everything.map((metric) => ({ machine: 6, metric, fromS: 700, to: nothing }));
    for (const stepS of few([1, 15, 30], 2)) {
      const report = findMachines(
        testFleet({ changes: dead, stepS, seconds: 700 + 2 * stepS + 240 }),
      );
      expect(names(report)).toEqual(["node006"]);
      expect(report.faulty[0]!.metric).toBe("reporting");
    }
  });

  it("of one GPU's samples is a GPU that vanished", () => {
    const lost = everything
      .filter((metric) => metric.startsWith("gpu-"))
      .map((metric) => ({ machine: 6, device: 1, metric, fromS: 700, to: nothing }));
    const report = findMachines(testFleet({ changes: lost, haltS: 702 }));
    expect(names(report)).toEqual(["node006"]);
    expect(report.faulty[0]!.metric).toBe("gpus");
  });

  it("of the GPU exporter alone, while the host goes on, is a telemetry fault", () => {
    const lost = everything
      .filter((metric) => metric.startsWith("gpu-"))
      .map((metric) => ({ machine: 6, metric, fromS: 600, to: nothing }));
    const report = findMachines(testFleet({ changes: lost }));
    expect(names(report)).toEqual([]);
    expect(report.telemetry).toMatchObject([{ machine: "node006", metric: "reporting" }]);
  });

  it("of nearly everybody accuses nobody", () => {
    const dead = everything.flatMap((metric) =>
      Array.from({ length: 12 }, (_, machine) => ({ machine, metric, fromS: 600, to: nothing })),
    );
    const report = findMachines(testFleet({ changes: dead }));
    expect(names(report)).toEqual([]);
    expect(report.missing.join()).toMatch(/12 of 16 machines stopped reporting/);
  });
});

describe("telemetry faults", () => {
  it("are zeros that the coupled metrics contradict", () => {
    const changes: Change[] = [
      { machine: 3, metric: "gpu-graphics-engine-activity", fromS: 200, to: () => 0 },
    ];
    const report = findMachines(testFleet({ changes }));
    expect(names(report)).toEqual([]);
    expect(report.telemetry).toMatchObject([
      { machine: "node003", metric: "gpu-graphics-engine-activity" },
    ]);
  });

  it("are values that stand still while the job halts", () => {
    const frozen = new Map<string, number>();
    const freeze =
      (metric: string) =>
      (value: number): number => {
        if (!frozen.has(metric)) frozen.set(metric, value);
        return frozen.get(metric)!;
      };
    const changes = everything
      .filter((metric) => metric.startsWith("gpu-"))
      .map((metric) => ({ machine: 3, device: 0, metric, fromS: 200, to: freeze(metric) }));
    const report = findMachines(testFleet({ changes, haltS: 500 }));
    expect(names(report)).toEqual([]);
    expect(report.telemetry.length).toBeGreaterThan(0);
  });
});

describe("after an attack", () => {
  const slowClock = (machine: number): Change => ({
    machine,
    metric: "gpu-clocks",
    fromS: 400,
    to: (x) => x * 0.65,
  });

  it("a rack of a quarter of the machines is named, and of a third it is said that nobody can be", () => {
    const metrics = ["gpu-clocks", "gpu-tensor-core-activity"];
    const shape = { machines: 16, gpus: 2, metrics };
    const four = testFleet({ ...shape, changes: [0, 1, 2, 3].map(slowClock) });
    expect(names(findMachines(four)).toSorted()).toEqual([
      "node000",
      "node001",
      "node002",
      "node003",
    ]);
    const six = findMachines(testFleet({ ...shape, changes: [0, 1, 2, 3, 4, 5].map(slowClock) }));
    expect(names(six)).toEqual([]);
    expect(six.missing.join()).toMatch(
      /a quarter of the machines and more are far from the rest in GPU clock/,
    );
  });

  it("of two machines the one on the harmful side is named", () => {
    const report = findMachines(testFleet({ machines: 2, changes: gone(1, 500) }));
    expect(names(report)).toEqual(["node001"]);
  });

  it("noise averages out over time", () => {
    const noisy: Change[] = Array.from({ length: 16 }, (_, machine) => ({
      machine,
      metric: "cpu-usage",
      fromS: 0,
      to: (x) => x * (1 + 0.12 * Math.sin(1e4 * x)),
    }));
    const low: Change = { machine: 4, metric: "cpu-usage", fromS: 900, to: (x) => x * 0.35 };
    const shape = { metrics: ["cpu-usage"], seconds: 2400, stepS: 15 };
    expect(names(findMachines(testFleet({ ...shape, changes: noisy })))).toEqual([]);
    expect(names(findMachines(testFleet({ ...shape, changes: [...noisy, low] })))).toEqual([
      "node004",
    ]);
  });

  it("a machine that was away for longer than the continuity is named, with its return", () => {
    const away = everything.map((metric) => ({
      machine: 6,
      metric,
      fromS: 300,
      toS: 620,
      to: nothing,
    }));
    const [faulty] = findMachines(testFleet({ changes: away, stepS: 5 })).faulty;
    expect(faulty).toMatchObject({ machine: "node006", metric: "reporting" });
    expect(faulty!.untilS! - EPOCH_S).toBe(620);
  });

  it("an outage of the monitoring is one remark", () => {
    const away = everything.flatMap((metric) =>
      Array.from({ length: 16 }, (_, machine) => ({
        machine,
        metric,
        fromS: 300,
        toS: 420,
        to: nothing,
      })),
    );
    const report = findMachines(testFleet({ changes: away, stepS: 5 }));
    expect(names(report)).toEqual([]);
    expect(report.jitter).toEqual([]);
    expect(report.missing.join()).toMatch(/the monitoring was away, not the machines/);
  });

  it("a spare that never worked is not held against the others", () => {
    const idle: Change[] = [
      ...gone(7, 0),
      { machine: 7, metric: "gpu-memory-used", fromS: 0, to: () => 4 },
      { machine: 7, metric: "gpu-tensor-core-activity", fromS: 0, to: () => 0 },
    ];
    const report = findMachines(testFleet({ changes: idle }));
    expect(names(report)).toEqual([]);
    expect(report.missing.join()).toMatch(/node007, which took no part in the job/);
  });

  it("an idle GPU whose power stands still to the watt is no telemetry fault", () => {
    const stopped: Change[] = [
      { machine: 3, metric: "gpu-duty-cycle", fromS: 500, to: () => 0 },
      { machine: 3, metric: "gpu-power-draw", fromS: 500, to: () => 72 },
      { machine: 3, metric: "gpu-graphics-engine-activity", fromS: 500, to: () => 0 },
    ];
    const report = findMachines(testFleet({ changes: stopped, haltS: 500 }));
    expect(names(report)).toEqual(["node003"]);
    expect(report.telemetry).toEqual([]);
  });

  it("a second, independent fault is no follower of the first", () => {
    const clock: Change = {
      machine: 2,
      metric: "gpu-clocks",
      fromS: 100,
      toS: 420,
      to: (x) => x / 2,
    };
    const report = findMachines(testFleet({ changes: [clock, surge(9, 520)] }));
    expect(names(report).toSorted()).toEqual(["node002", "node009"]);
    expect(report.followers).toEqual([]);
  });

  it("power alone, sampled as seldom as iterations come, is no fault; with the clock it is", () => {
    const power = { machine: 3, metric: "gpu-power-draw", fromS: 400, to: (x: number) => x * 0.7 };
    const clock = { machine: 3, metric: "gpu-clocks", fromS: 400, to: (x: number) => x * 0.6 };
    const coarse = { machines: 8, stepS: 15, seconds: 1200 };
    expect(names(findMachines(testFleet({ ...coarse, changes: [power] })))).toEqual([]);
    expect(names(findMachines(testFleet({ ...coarse, changes: [power, clock] })))).toEqual([
      "node003",
    ]);
    const fine = { machines: 8, stepS: 1, seconds: 1200 };
    expect(names(findMachines(testFleet({ ...fine, changes: [power] })))).toEqual(["node003"]);
  });

  it("where most of a stage goes bad at once, those that stay as they were are not accused", () => {
    const bad = Array.from({ length: 10 }, (_, i) => 20 + i);
    const changes = bad.flatMap((machine): Change[] => [
      { machine, metric: "memory-usage", fromS: 400, to: (x) => x * 0.3 },
      { machine, metric: "cpu-usage", fromS: 400, to: (x) => x * 0.1 },
    ]);
    const report = findMachines(testFleet({ machines: 48, stages: 4, changes }));
    expect(names(report).filter((name) => !bad.some((m) => name === `node0${m}`))).toEqual([]);
    expect(report.missing.join()).toMatch(/far from the rest|changed together/);
  });

  it("a slow PCIe link of a GPU that works is named within minutes; of one that idles it is not", () => {
    const level = 5;
    const link = (machines: number, changed: number): MetricGrid => {
      const { grids } = testFleet({ machines, metrics: ["gpu-clocks"] });
      const values = new Float32Array(grids[0]!.mean.length).fill(level);
      const { ticks } = grids[0]!;
      values.fill(1, changed * ticks + 400, changed * ticks + 560);
      return {
        ...grids[0]!,
        metric: "pcie-link-generation",
        mean: values,
        low: values,
        high: values,
      };
    };
    const working = testFleet({ machines: 12 });
    const found = findMachines({ ...working, grids: [...working.grids, link(12, 4)] });
    expect(names(found)).toEqual(["node004"]);
    const idle = testFleet({
      machines: 12,
      changes: [
        { machine: 4, metric: "gpu-duty-cycle", fromS: 400, toS: 560, to: () => 0 },
        { machine: 4, metric: "gpu-graphics-engine-activity", fromS: 400, toS: 560, to: () => 0 },
      ],
    });
    expect(names(findMachines({ ...idle, grids: [...idle.grids, link(12, 4)] }))).toEqual([]);
  });
});
