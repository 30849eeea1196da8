import { expect, it } from "vitest";
import { findMachines } from "./find-machines.ts";
import { testFleet, type Change } from "../../../test/support/methods/fleet.ts";

const fromS = 400;
/** A GPU that is throttled; and a machine that polls while it waits and pauses what it cannot receive. */
const throttled = (machine: number): Change[] => [
  { machine, device: 1, metric: "gpu-clocks", fromS, to: (x) => 0.6 * x },
];
const loud = (machine: number): Change[] => [
  { machine, metric: "cpu-usage", fromS, to: (x) => 2.5 * x },
  { machine, metric: "pfc-tx-packet-rate", fromS, to: (x) => 10 + 500 * x },
];
const scores = (...changes: Change[]): Map<string, number> =>
  new Map(
    findMachines(testFleet({ changes })).faulty.map(({ machine, score }) => [machine, score]),
  );

it("a machine that shows no more than waiting does is the lesser suspect beside one that shows more", () => {
  const both = scores(...throttled(3), ...loud(7));
  expect([...both.keys()]).toEqual(["node003", "node007"]);
  expect(both.get("node007")).toBeLessThan(scores(...loud(7)).get("node007")!);
});

it("alone it is suspected as before", () => {
  expect(scores(...loud(7)).get("node007")).toBeGreaterThan(0.6);
});

it("whoever writes a checkpoint while another's fault halts the job is not to blame", () => {
  const idle = ["gpu-duty-cycle", "gpu-power-draw", "gpu-clocks"].map((metric): Change => ({
    machine: 3,
    device: 1,
    metric,
    fromS,
    to: (x) => 0.1 * x,
  }));
  const writes = ["cpu-usage", "memory-usage", "tcp-throughput"].map((metric): Change => ({
    machine: 7,
    metric,
    fromS: fromS + 20,
    toS: 720,
    to: (x) => 6 * x,
  }));
  const asked = (...changes: Change[]): string[] => {
    const { faulty, followers } = findMachines(testFleet({ haltS: fromS, changes }));
    return [...faulty, ...followers].map(({ machine, ...one }) =>
      "after" in one ? `${machine} after ${one.after}` : machine,
    );
  };
  expect(asked(...idle, ...writes)).toEqual(["node003", "node007 after node003"]);
  expect(asked(...writes)).toEqual(["node007"]);
});

it("who pauses is not to blame beside one that pauses far more and whose GPU is slow", () => {
  const pauses = (machine: number, by: number): Change => ({
    machine,
    metric: "pfc-tx-packet-rate",
    fromS: fromS + 10 * (machine === 3 ? 1 : 0),
    to: (x) => 10 + by * x,
  });
  expect([...scores(...throttled(3), pauses(3, 5000), pauses(7, 50)).keys()]).toEqual(["node003"]);
  expect([...scores(pauses(3, 500), pauses(7, 500)).keys()].sort()).toEqual(["node003", "node007"]);
});
