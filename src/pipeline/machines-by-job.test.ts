import { describe, expect, it } from "vitest";
import { findMachines } from "../methods/machines/find-machines.ts";
import type { Fleet } from "../model/fleet.ts";
import { EPOCH_S, testFleet, type Change } from "../../test/support/methods/fleet.ts";
import { fleetByJob, hardCountersOf, type PlacedJob } from "./machines-by-job.ts";

const METRICS = ["cpu-usage", "gpu-duty-cycle", "gpu-power-draw", "gpu-tensor-core-activity"];

function name(m: number): string {
  return `node${String(m).padStart(3, "0")}`;
}

function job(of: string, from: number, to: number, more: Partial<PlacedJob> = {}): PlacedJob {
  const list = Array.from({ length: to - from }, (_, k) => name(from + k));
  const machines = new Map(list.map((one) => [`${one}.cluster`, { stage: null, ranks: [] }]));
  return { job: of, run: "r1", startedMs: 0, machines, ...more };
}

/** What a machine does whose job ended: nothing. */
function idle(machine: number, fromS: number): Change[] {
  return METRICS.map((metric) => ({ machine, metric, fromS, to: (x) => 0.05 * x }));
}

function site(changes: readonly Change[]): Fleet {
  return testFleet({ machines: 20, stepS: 5, metrics: METRICS, changes });
}

const accused = (fleet: Fleet): string[] => findMachines(fleet).faulty.map((one) => one.machine);
const one = (machine: number): Change[] =>
  ["gpu-power-draw", "gpu-tensor-core-activity"].map((metric) => ({
    machine,
    metric,
    fromS: 450,
    to: (x) => 0.4 * x,
  }));

describe("a site of several jobs", () => {
  it("does not accuse the machines of a small job that does something else", () => {
    const fleet = site([0, 1, 2].flatMap((m) => idle(m, 400)));
    expect(accused(fleet)).not.toEqual([]);
    const parts = fleetByJob(fleet, [job("small", 0, 3), job("large", 3, 20)]);
    expect(parts.map((part) => part.fleet.machines.length)).toEqual([3, 17]);
    expect(parts.flatMap((part) => accused(part.fleet))).toEqual([]);
  });

  it("finds the sick machine of each job among its own peers", () => {
    const others = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
    const fleet = site([...others.flatMap((m) => idle(m, 0)), ...one(4), ...one(13)]);
    const parts = fleetByJob(fleet, [job("a", 0, 10), job("b", 10, 20)]);
    expect(parts.map((part) => [part.job?.job, accused(part.fleet)])).toEqual([
      ["a", ["node004"]],
      ["b", ["node013"]],
    ]);
  });

  it("keeps apart machines of no job, of two jobs, and of a job of two machines", () => {
    const parts = fleetByJob(site([]), [job("a", 0, 8), job("b", 7, 14), job("c", 14, 16)]);
    expect(parts.map((part) => [part.job?.job ?? null, part.fleet.machines])).toEqual([
      ["a", [0, 1, 2, 3, 4, 5, 6].map(name)],
      ["b", [8, 9, 10, 11, 12, 13].map(name)],
      [null, [7, 14, 15, 16, 17, 18, 19].map(name)],
    ]);
    expect(parts[0]!.fleet.missing).toContain("1 of the 8 machines of job a are not compared");
  });

  it("leaves out what machines did before the job began", () => {
    // The first machine still ran another job while the others waited for it.
    const early = [1, 2, 3, 4, 5, 6, 7].flatMap((m) =>
      METRICS.map((metric) => ({ machine: m, metric, fromS: 0, toS: 300, to: () => 0 })),
    );
    const startedMs = 1000 * (EPOCH_S + 300);
    const [part] = fleetByJob(site(early), [job("a", 0, 8, { startedMs })]);
    expect(part!.fleet.grids.map((grid) => [grid.startS, grid.ticks])).toEqual(
      METRICS.map(() => [EPOCH_S + 300, 120]),
    );
    expect(accused(part!.fleet)).toEqual([]);
    const later = fleetByJob(site([]), [job("a", 0, 8, { startedMs: 1000 * (EPOCH_S + 5000) })]);
    expect(later[0]!.fleet.grids).toEqual([]);
  });

  it("compares within stages, and within hardware where a job has several kinds", () => {
    const mixed = {
      ...site([]),
      role: Int32Array.from({ length: 20 }, (_, m) => m % 2),
      roles: ["A100", "H100"],
    };
    const machines = new Map(
      [0, 2, 4, 1, 3, 5].map((m) => [name(m), { stage: m < 3 ? "stage 0" : null, ranks: [] }]),
    );
    const [part] = fleetByJob(mixed, [{ ...job("a", 0, 0), machines }]);
    const { roles, role } = part!.fleet;
    expect([...role].map((r) => roles[r])).toEqual([
      "stage 0, A100",
      "stage 0, H100",
      "stage 0, A100",
      "H100",
      "A100",
      "H100",
    ]);
    const alike = new Map([0, 2, 4].map((m) => [name(m), { stage: null, ranks: [] }]));
    const [same] = fleetByJob(mixed, [{ ...job("a", 0, 0), machines: alike }]);
    expect(same!.fleet.roles).toEqual(["all machines"]);
  });

  it("judges machines of no job by hard counters alone", () => {
    const [grid] = site([]).grids;
    const xid = { ...grid!, metric: "xid-errors" };
    const fleet = { ...site([]), grids: [...site([]).grids, xid] };
    expect(hardCountersOf(fleet).grids.map(({ metric }) => metric)).toEqual(["xid-errors"]);
  });
});
