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
