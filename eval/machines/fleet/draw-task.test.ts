import { describe, expect, it } from "vitest";
import { drawTask, FAULT_MIX } from "./draw-task.ts";
import { fleetTask } from "./fleet-task.ts";
import { nicCsv, nicMilliseconds, nicsAsMachines } from "./nic-milliseconds.ts";

describe("drawn tasks", () => {
  const tasks = Array.from({ length: 2000 }, (_, seed) => drawTask(seed, true));

  it("have the sizes and the faults of Minder's evaluation", () => {
    const share = (is: (task: (typeof tasks)[number]) => boolean): number =>
      tasks.filter(is).length / tasks.length;
    expect(Math.abs(share(({ machines }) => machines >= 600) - 0.3)).toBeLessThan(0.04);
    expect(Math.min(...tasks.map(({ machines }) => machines))).toBe(4);
    expect(Math.max(...tasks.map(({ machines }) => machines))).toBeGreaterThan(1400);
    for (const [type, percent] of Object.entries(FAULT_MIX))
      expect(Math.abs(share(({ fault }) => fault!.type === type) - percent / 100)).toBeLessThan(
        0.03,
      );
    const lasts = ({ fault }: (typeof tasks)[number]): number =>
      (fault!.untilS ?? Infinity) - fault!.onsetS;
    expect(share((task) => lasts(task) < 240)).toBeLessThan(0.17);
    expect(share((task) => lasts(task) < 240)).toBeGreaterThan(0.08);
  });

  it("are healthy where they are to be, and the same for the same seed", () => {
    expect(drawTask(7, false).fault).toBeNull();
    expect(drawTask(7, true)).toEqual(drawTask(7, true));
    const { truth, fleet } = fleetTask({ ...drawTask(8, false), machines: 16 });
    expect(truth.fault).toBeNull();
    expect(fleet.machines).toHaveLength(16);
  });

  it("keep faults that no metric shows, and say so", () => {
    const shown = tasks.slice(0, 300).map((task) => {
      const fault = { ...task.fault!, machines: [0] };
      return fleetTask({ ...task, machines: 4, pp: 1, metrics: [], fault }).truth.fault!;
    });
    const nothing = shown.filter((fault) => fault.shown.length === 0).length;
    expect(nothing).toBeGreaterThan(5);
    expect(nothing).toBeLessThan(60);
    expect(shown.some(({ gpus }) => gpus?.length === 2)).toBe(true);
  });
});

describe("NICs by the millisecond", () => {
  it("the bad ones send the same bytes a step, slowly, while the others are done and wait", () => {
    const { fleet, truth } = nicsAsMachines({ seed: 3, noise: 0, nicsPerMachine: 8 });
    expect(truth.bad).toHaveLength(2);
    expect(new Set(truth.bad.map(({ machine }) => machine)).size).toBe(2);
    const { mean, ticks } = fleet.grids[0]!;
    const step = (nic: number): number[] =>
      Array.from(mean.subarray(nic * ticks, nic * ticks + truth.stepMs));
    const bytes = (nic: number): number => step(nic).reduce((sum, value) => sum + value, 0);
    const peak = (nic: number): number => Math.max(...step(nic));
    const bad = truth.bad.map(({ machine, nic }) => machine * 8 + nic);
    const good = fleet.machines.findIndex((_, nic) => !bad.includes(nic));
    for (const nic of bad) {
      expect(bytes(nic) / bytes(good)).toBeCloseTo(1, 3);
      expect(peak(nic)).toBeLessThan(0.5 * peak(good));
    }
    expect(step(good).at(-10)).toBe(0);
  });

  it("come as machines with devices and as a table", () => {
    const options = { seed: 3, seconds: 0.2, badMachines: 1 };
    const { fleet, truth } = nicMilliseconds(options);
    const { lowDevice, ticks, stepS } = fleet.grids[0]!;
    expect([ticks, stepS]).toEqual([200, 0.001]);
    const { machine, nic } = truth.bad[0]!;
    expect(lowDevice![machine * ticks + 2]).toBe(nic);
    const lines = nicCsv(options).trimEnd().split("\n");
    expect(lines).toHaveLength(201);
    expect(lines[0]).toMatch(/^seconds,node0\/mlx5_0,/);
  });
});
