import { describe, expect, it } from "vitest";
import type { Fleet, MetricGrid } from "../../../src/model/fleet.ts";
import { CATALOG } from "../../../src/model/metric-catalog.ts";
import type { MetricGroup } from "../../../src/simulate/emit/metrics/minder-table.ts";
import { fleetTask, type FleetTaskOptions } from "./fleet-task.ts";
import { NO_NUISANCES } from "./nuisances.ts";

const CLEAN: FleetTaskOptions = {
  machines: 6,
  pp: 1,
  seconds: 240,
  iterationS: 5,
  seed: 5,
  nuisances: NO_NUISANCES,
};
const ONSET_S = 100;

function grid({ grids }: Fleet, metric: string): MetricGrid {
  return grids.find((one) => one.metric === metric)!;
}

/** A machine's values from one time to another. */
function values(
  of: MetricGrid,
  part: "mean" | "low" | "high",
  machine: number,
  from = 0,
): number[] {
  return Array.from(of[part].subarray(machine * of.ticks + from, (machine + 1) * of.ticks));
}

/** Metrics in which a machine differs from machine 0, which is healthy, late in the window. */
function deviating(fleet: Fleet, machine: number): Set<string> {
  const found = new Set<string>();
  for (const one of fleet.grids) {
    const late = (m: number, part: "mean" | "low" | "high"): number[] => values(one, part, m, 200);
    for (const part of ["mean", "low", "high"] as const)
      if (late(machine, part).some((value, t) => !Object.is(value, late(0, part)[t])))
        found.add(one.metric);
  }
  return found;
}

describe("a clean task", () => {
  it("has every metric of the catalog, the same on all machines of a stage", () => {
    const { fleet, truth } = fleetTask({ ...CLEAN, machines: 8, pp: 2 });
    const metrics = fleet.grids.map(({ metric }) => metric);
    expect(metrics).toEqual(CATALOG.map(({ id }) => id).filter((id) => metrics.includes(id)));
    const minder = CATALOG.filter(({ isMinder }) => isMinder).map(({ id }) => id);
    expect(metrics).toEqual(expect.arrayContaining([...minder, "pcie-link-width", "xid-errors"]));
    expect(truth.fault).toBeNull();
    expect([...truth.jitters, ...truth.telemetry]).toEqual([]);
    for (const one of fleet.grids) {
      for (let machine = 0; machine < 8; machine++)
        // How full a disk is has a middle only.
        expect(values(one, "low", machine)).toEqual(values(one, "low", machine < 4 ? 0 : 4));
      expect(one.coverage).toBe(1);
    }
    const tensor = grid(fleet, "gpu-tensor-core-activity");
    expect(values(tensor, "mean", 4)[50]!).toBeGreaterThan(1.05 * values(tensor, "mean", 0)[50]!);
    expect(fleet.roles).toHaveLength(2);
  });

  it("can be told what the site has and how often it samples", () => {
    const metrics = ["cpu-usage", "gpu-duty-cycle", "pcie-usage"];
    const { fleet } = fleetTask({ ...CLEAN, metrics, stepS: 15 });
    expect(fleet.grids.map(({ metric }) => metric)).toEqual(metrics);
    expect(fleet.grids.map(({ ticks, stepS }) => [ticks, stepS])).toEqual(
      metrics.map(() => [16, 15]),
    );
  });
});

describe("a fault", () => {
  const GROUPS: readonly MetricGroup[] = ["cpu", "gpu", "pfc", "throughput", "disk", "memory"];

  it.each(GROUPS)("shows in the group %s and nowhere else", (group) => {
    const fault = {
      type: "ecc" as const,
      machines: [3],
      onsetS: ONSET_S,
      shown: [group],
      states: [],
      strength: { idle: 0.8 },
      reaction: "none" as const,
    };
    const { fleet } = fleetTask({ ...CLEAN, fault });
    const groups = new Set(
      [...deviating(fleet, 3)].map((id) => CATALOG.find((metric) => metric.id === id)!.group),
    );
    // A disk that fills becomes full, which is a state.
    expect([...groups]).toEqual(group === "disk" ? ["disk", "state"] : [group]);
    expect([...deviating(fleet, 4)]).toEqual([]);
  });

  it("may show in nothing at all", () => {
    const fault = { type: "aoc" as const, machines: [3], onsetS: ONSET_S, shown: [], states: [] };
    const { fleet, truth } = fleetTask({ ...CLEAN, fault });
    expect(truth.fault!.shown).toEqual([]);
    expect([...deviating(fleet, 3)]).toEqual([]);
  });

  it("makes the others wait: busy by the duty cycle, at little power, sending nothing", () => {
    const fault = { type: "ecc" as const, machines: [3], onsetS: ONSET_S, untilS: 200 };
    const { fleet } = fleetTask({ ...CLEAN, fault: { ...fault, shown: ["cpu"], states: [] } });
    const at = (metric: string, t: number): number => values(grid(fleet, metric), "mean", 0)[t]!;
    expect(at("gpu-duty-cycle", 150)).toBeGreaterThan(95);
    expect(at("gpu-power-draw", 150)).toBeLessThan(0.5 * at("gpu-power-draw", 50));
    expect(at("gpu-tensor-core-activity", 150)).toBe(0);
    expect(at("tcp-rdma-throughput", 150)).toBeLessThan(1e-3 * at("tcp-rdma-throughput", 50));
    expect(at("cpu-usage", 150)).toBeGreaterThan(0.8 * at("cpu-usage", 50));
    // Halted: nobody has anything to do.
    expect(at("gpu-duty-cycle", 230)).toBe(0);
  });

  it("PCIe downgrading: the culprit pauses first and most, and all NICs slow down", () => {
    const strength = { pfc: 1000 };
    const fault = { type: "pcie" as const, machines: [3], onsetS: ONSET_S, rampS: 0, strength };
    const { fleet } = fleetTask({ ...CLEAN, machines: 40, fault: { ...fault, shown: ["pfc"] } });
    const pfc = grid(fleet, "pfc-tx-packet-rate");
    const normal = values(pfc, "mean", 0)[50]!;
    const onset = (machine: number): number =>
      values(pfc, "mean", machine).findIndex((value) => value > 2 * normal);
    const surging = fleet.machines.map((_, m) => m).filter((m) => onset(m) >= 0);
    expect(surging.length).toBeGreaterThan(3);
    for (const machine of surging.filter((m) => m !== 3)) {
      expect(onset(machine)).toBeGreaterThan(onset(3));
      expect(values(pfc, "mean", machine)[239]!).toBeLessThan(0.2 * values(pfc, "mean", 3)[239]!);
    }
    const sent = values(grid(fleet, "tcp-rdma-throughput"), "mean", 0);
    expect(sent[200]! / sent[50]!).toBeGreaterThan(0.6);
    expect(sent[200]! / sent[50]!).toBeLessThan(0.9);
  });

  it("of a dead machine all series stop, whether the job notices or not", () => {
    for (const reaction of ["wait", "none"] as const) {
      const fault = { type: "unreachable" as const, machines: [2], onsetS: ONSET_S, reaction };
      const { fleet } = fleetTask({ ...CLEAN, fault: { ...fault, vanishes: "machine" } });
      for (const one of fleet.grids) {
        expect(values(one, "mean", 2).slice(0, ONSET_S).every(Number.isFinite)).toBe(true);
        expect(values(one, "mean", 2, ONSET_S).every(Number.isNaN)).toBe(true);
        expect(values(one, "mean", 1).every(Number.isFinite)).toBe(true);
      }
      const tensor = values(grid(fleet, "gpu-tensor-core-activity"), "mean", 0)[200]!;
      expect(tensor > 0).toBe(reaction === "none");
    }
  });

  it("a card that drops takes its samples with it", () => {
    const fault = { type: "card-drop" as const, machines: [2], gpus: [5], onsetS: ONSET_S };
    const { fleet } = fleetTask({ ...CLEAN, fault: { ...fault, shown: ["gpu"], vanishes: "gpu" } });
    const { reporting, ticks } = grid(fleet, "gpu-temperature");
    expect(reporting![2 * ticks + 50]).toBe(8);
    expect(reporting![2 * ticks + 150]).toBe(7);
  });

  it("may hit two machines, or all under a switch", () => {
    const machines = Array.from({ length: 32 }, (_, n) => 8 + n);
    const fault = { type: "aoc" as const, machines, onsetS: ONSET_S, shown: ["cpu" as const] };
    const metrics = ["cpu-usage"];
    const { fleet } = fleetTask({ ...CLEAN, machines: 60, metrics, fault });
    const found = fleet.machines.map((_, m) => m).filter((m) => deviating(fleet, m).size > 0);
    expect(found).toEqual(machines);
  });
});

describe("nuisances", () => {
  const NOISY: FleetTaskOptions = { machines: 12, pp: 2, seconds: 600, seed: 9 };

  it("are the same for the same seed, and of a fault touch only what it touches", () => {
    const one = fleetTask(NOISY);
    const again = fleetTask(NOISY);
    expect(again.truth).toEqual(one.truth);
    // Bit by bit: comparing a million numbers one by one takes the test framework seconds.
    const bytes = (given: Float32Array): Buffer => Buffer.from(given.buffer);
    one.fleet.grids.forEach(({ mean: first, low, high }, g) => {
      const other = again.fleet.grids[g]!;
      expect(bytes(first).equals(bytes(other.mean))).toBe(true);
      expect(bytes(low).equals(bytes(other.low))).toBe(true);
      expect(bytes(high).equals(bytes(other.high))).toBe(true);
    });
    const fault = { type: "ecc" as const, machines: [3], onsetS: 300, shown: ["cpu" as const] };
    const other = fleetTask({ ...NOISY, fault: { ...fault, states: [], reaction: "none" } });
    one.fleet.grids.forEach((healthy, g) => {
      const sick = other.fleet.grids[g]!;
      for (let machine = 0; machine < 12; machine++)
        if (machine !== 3 || healthy.metric !== "cpu-usage")
          expect(values(sick, "mean", machine).join()).toBe(
            values(healthy, "mean", machine).join(),
          );
    });
    const another = fleetTask({ ...NOISY, seed: 10 }).fleet.grids[0]!;
    expect(bytes(another.mean).equals(bytes(one.fleet.grids[0]!.mean))).toBe(false);
  });

  it("make machines differ for ever and wander over minutes", () => {
    const quiet = { ...NOISY, machines: 40, pp: 1, seconds: 900 };
    const nuisances = { jitters: 0, checkpoints: null, telemetry: 0, telemetryPerMachine: 0 };
    const { fleet } = fleetTask({ ...quiet, nuisances });
    const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1]!;
    const degrees = fleet.machines.map((_, m) =>
      median(values(grid(fleet, "gpu-temperature"), "mean", m)),
    );
    expect(Math.max(...degrees) - Math.min(...degrees)).toBeGreaterThan(6);
    const usage = fleet.machines.map((_, m) => values(grid(fleet, "cpu-usage"), "mean", m));
    // Means of half a minute each, one minute apart, still know of each other.
    let together = 0;
    let all = 0;
    for (const series of usage) {
      const means = Array.from({ length: 15 }, (_, k) => mean(series.slice(60 * k, 60 * k + 30)));
      const middle = mean(means);
      means.forEach((value, k) => {
        all += (value - middle) ** 2;
        if (k > 0) together += (value - middle) * (means[k - 1]! - middle);
      });
    }
    expect(together / all).toBeGreaterThan(0.3);
  });

  it("pause the job for checkpoints, and keep their writer busy for longer", () => {
    const checkpoints = { everyS: 300, pauseS: 20, writeS: 60, writers: "one" as const };
    const { fleet } = fleetTask({ ...CLEAN, nuisances: { ...NO_NUISANCES, checkpoints } });
    const tensor = values(grid(fleet, "gpu-tensor-core-activity"), "mean", 1);
    const tcp = (machine: number): number[] =>
      values(grid(fleet, "tcp-throughput"), "mean", machine);
    expect([tensor[140]! > 0, tensor[160], tensor[180]! > 0]).toEqual([true, 0, true]);
    expect(tcp(1)[160]!).toBeGreaterThan(10 * tcp(1)[100]!);
    expect(tcp(0)[200]!).toBeGreaterThan(3 * tcp(1)[200]!);
  });

  it("start machines one after the other, evaluate, and stand idle", () => {
    const nuisances = {
      ...NO_NUISANCES,
      warmupS: 60,
      evaluation: { fromS: 100, untilS: 130 },
      idle: { fromS: 180, untilS: 220 },
    };
    const { fleet } = fleetTask({ ...CLEAN, nuisances });
    const memory = fleet.machines.map((_, m) =>
      values(grid(fleet, "gpu-memory-used"), "mean", m).findIndex((mib) => mib > 1000),
    );
    expect(new Set(memory).size).toBeGreaterThan(3);
    const sent = values(grid(fleet, "tcp-rdma-throughput"), "mean", 0);
    expect(sent[115]!).toBeLessThan(0.4 * sent[150]!);
    expect(values(grid(fleet, "gpu-duty-cycle"), "mean", 0)[200]).toBe(0);
  });

  it("lose scrapes and repeat what a slow exporter says", () => {
    const nuisances = {
      ...NO_NUISANCES,
      lostShare: 0.01,
      gaps: 1,
      noise: { offsets: 0, slow: 1, fast: 1, common: 0, bursts: 0 },
    };
    const { fleet } = fleetTask({ ...CLEAN, machines: 40, nuisances });
    const { coverage } = grid(fleet, "cpu-usage");
    expect(coverage).toBeLessThan(0.995);
    expect(coverage).toBeGreaterThan(0.96);
    const held = { ...nuisances, lostShare: 0, gaps: 0, dcgmEveryS: 30 };
    const { fleet: slow } = fleetTask({ ...CLEAN, seconds: 600, stepS: 15, nuisances: held });
    const power = values(grid(slow, "gpu-power-draw"), "mean", 0);
    const repeated = power.filter((value, t) => t > 0 && value === power[t - 1]).length;
    expect(repeated).toBeGreaterThanOrEqual(19);
  });

  it("break exporters, and say so", () => {
    const nuisances = { ...NO_NUISANCES, telemetry: 3 };
    const { fleet, truth } = fleetTask({ ...CLEAN, machines: 30, seconds: 300, nuisances });
    expect(new Set(truth.telemetry.map(({ kind }) => kind)).size).toBeGreaterThan(3);
    const broken = new Set(truth.telemetry.map(({ machine }) => machine));
    for (const one of fleet.grids) {
      const sound = fleet.machines.findIndex((_, m) => !broken.has(m));
      fleet.machines.forEach((_, m) => {
        if (!broken.has(m)) expect(values(one, "low", m)).toEqual(values(one, "low", sound));
      });
    }
    const zero = truth.telemetry.find(
      ({ kind, untilS }) => kind === "engine-zero" && untilS > 300,
    )!;
    expect(values(grid(fleet, "gpu-graphics-engine-activity"), "mean", zero.machine).at(-1)).toBe(
      0,
    );
  });

  it("jitter machines now and then", () => {
    const { truth } = fleetTask({ ...NOISY, machines: 1000, metrics: ["cpu-usage"], seconds: 900 });
    expect(truth.jitters.length).toBeGreaterThan(2);
    for (const { fromS, untilS } of truth.jitters) expect(untilS - fromS).toBeLessThanOrEqual(120);
  });
});

function mean(list: readonly number[]): number {
  return list.reduce((sum, value) => sum + (Number.isNaN(value) ? 0 : value), 0) / list.length;
}
