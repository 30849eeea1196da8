import { describe, expect, it } from "vitest";
import { findMachines } from "./find-machines.ts";
import { extendFleet, mergeMetrics } from "./merge-fleets.ts";
import { EPOCH_S, testFleet, type TestFleet } from "../../../test/support/methods/fleet.ts";
import type { Fleet } from "../../model/fleet.ts";

const METRICS = ["cpu-usage", "gpu-duty-cycle", "gpu-power-draw", "gpu-tensor-core-activity"];
const SHAPE: TestFleet = {
  machines: 8,
  seconds: 900,
  stepS: 5,
  metrics: METRICS,
  haltS: 600,
  changes: [
    { machine: 3, metric: "cpu-usage", fromS: 600, to: (x) => x * 0.1 },
    { machine: 3, metric: "gpu-duty-cycle", fromS: 600, to: () => 0 },
  ],
};

/** What a pull of only this time would give. */
function slice(fleet: Fleet, fromS: number, toS: number): Fleet {
  return {
    ...fleet,
    grids: fleet.grids.map((grid) => {
      const first = Math.max(0, Math.round((EPOCH_S + fromS - grid.startS) / grid.stepS));
      const last = Math.min(grid.ticks, Math.round((EPOCH_S + toS - grid.startS) / grid.stepS));
      const cut = <T extends Float32Array | Uint8Array>(column: T): T => {
        const parts = fleet.machines.map((_, m) => [
          ...column.subarray(m * grid.ticks + first, m * grid.ticks + last),
        ]);
        return (column instanceof Uint8Array
          ? Uint8Array.from(parts.flat())
          : Float32Array.from(parts.flat())) as unknown as T;
      };
      const mean = cut(grid.mean);
      return {
        ...grid,
        startS: grid.startS + first * grid.stepS,
        ticks: last - first,
        mean,
        low: grid.low === grid.mean ? mean : cut(grid.low),
        high: grid.high === grid.mean ? mean : cut(grid.high),
        lowDevice: grid.lowDevice && cut(grid.lowDevice),
        highDevice: grid.highDevice && cut(grid.highDevice),
        reporting: grid.reporting && cut(grid.reporting),
      };
    }),
  };
}

describe("incremental calls", () => {
  it("give what one pull of the whole time gives", () => {
    const whole = testFleet(SHAPE);
    let fleet = slice(whole, 0, 400);
    for (const [fromS, toS] of [
      [375, 650],
      [620, 900],
    ] as const) {
      fleet = extendFleet(fleet, slice(whole, fromS, toS), 900);
    }
    expect(fleet.grids).toEqual(whole.grids);
    expect(findMachines(fleet).faulty).toEqual(findMachines(whole).faulty);
  });

  it("drop what is older than the span", () => {
    const whole = testFleet(SHAPE);
    const fleet = extendFleet(slice(whole, 0, 500), slice(whole, 475, 900), 600);
    expect(fleet.grids[0]).toMatchObject({ startS: EPOCH_S + 300, ticks: 120 });
    expect([...fleet.grids[0]!.mean.subarray(0, 120)]).toEqual([
      ...whole.grids[0]!.mean.subarray(60, 180),
    ]);
  });

  it("keep machines that have fallen silent, and take new ones in", () => {
    const whole = testFleet(SHAPE);
    const fresh = slice(whole, 475, 900);
    const without = {
      ...fresh,
      machines: fresh.machines.slice(1),
      role: fresh.role.slice(1),
      grids: fresh.grids.map((grid) => ({
        ...grid,
        mean: grid.mean.slice(grid.ticks),
        low: grid.low.slice(grid.ticks),
        high: grid.high.slice(grid.ticks),
        lowDevice: grid.lowDevice && grid.lowDevice.slice(grid.ticks),
        highDevice: grid.highDevice && grid.highDevice.slice(grid.ticks),
        reporting: grid.reporting && grid.reporting.slice(grid.ticks),
      })),
    };
    const fleet = extendFleet(slice(whole, 0, 500), without, 900);
    expect(fleet.machines).toEqual(whole.machines);
    expect(fleet.grids[0]!.mean[50]).toBe(whole.grids[0]!.mean[50]);
    expect(fleet.grids[0]!.mean[150]).toBeNaN();
    expect(
      findMachines(fleet)
        .faulty.map(({ machine }) => machine)
        .toSorted(),
    ).toEqual(["node000", "node003"]);
  });
});

describe("watching", () => {
  const only = (fleet: Fleet, machine: number, toS: number): Fleet => ({
    ...fleet,
    grids: fleet.grids.map((grid) => {
      const { ticks, startS, stepS } = grid;
      const cut = (column: Float32Array): Float32Array =>
        column.map((value, at) => {
          const isGone =
            Math.floor(at / ticks) === machine && startS + (at % ticks) * stepS >= EPOCH_S + toS;
          return isGone ? NaN : value;
        });
      const mean = cut(grid.mean);
      return {
        ...grid,
        mean,
        low: grid.low === grid.mean ? mean : cut(grid.low),
        high: grid.high === grid.mean ? mean : cut(grid.high),
      };
    }),
  });

  it("does not forget a machine that died before the span", () => {
    const dead = only(testFleet({ ...SHAPE, changes: [], haltS: Infinity, seconds: 1800 }), 5, 500);
    let fleet = slice(dead, 0, 600);
    for (const endS of [900, 1200, 1500, 1800]) {
      fleet = extendFleet(fleet, slice(dead, endS - 330, endS), 600);
      expect(findMachines(fleet).faulty).toMatchObject([
        { machine: "node005", metric: "reporting", sinceS: EPOCH_S + 500 },
      ]);
    }
  });

  it("keeps the history when a device is seen no more", () => {
    const whole = testFleet({ ...SHAPE, gpus: 3 });
    const fresh = slice(whole, 475, 900);
    const fewer = {
      ...fresh,
      grids: fresh.grids.map((grid) => ({ ...grid, devices: grid.devices.slice(0, 2) })),
    };
    const fleet = extendFleet(slice(whole, 0, 500), fewer, 900);
    const duty = fleet.grids.find(({ metric }) => metric === "gpu-duty-cycle")!;
    expect(duty.devices).toEqual(["gpu0", "gpu1", "gpu2"]);
    expect(duty.ticks).toBe(180);
  });
});

describe("metrics pulled one by one", () => {
  it("are put together by machine", () => {
    const all = testFleet({ machines: 4, metrics: METRICS, seconds: 100 });
    const apart = all.grids.map((grid): Fleet => ({ ...all, grids: [grid] }));
    expect(mergeMetrics(apart)).toEqual({ ...all, missing: [] });
    expect(mergeMetrics([])).toBeNull();
  });
});
