import { expect, it } from "vitest";
import { readMachineLabels } from "./machine-labels.ts";

const CSV = `machine,start,end,state,cause
node007,2026-11-15T00:41:00Z,2026-11-15 00:55:00,faulty,network-slow
"*",1763100000,1763103600,healthy,
`;

it("reads labels as tables and as the service exports them", () => {
  const labels = readMachineLabels(CSV, "labels.csv");
  expect(labels).toEqual([
    {
      machine: "node007",
      fromS: Date.parse("2026-11-15T00:41:00Z") / 1000,
      toS: Date.parse("2026-11-15T00:55:00Z") / 1000,
      isFaulty: true,
      cause: "network-slow",
    },
    { machine: null, fromS: 1763100000, toS: 1763103600, isFaulty: false, cause: null },
  ]);
  const row = { machine: "a", start: 1, end: 9, state: "healthy", cause: null, incident: "i" };
  expect(readMachineLabels(JSON.stringify({ labels: [row] }), "x")).toEqual(
    readMachineLabels(JSON.stringify([row]), "x"),
  );
});

it("says which label is wrong, and why", () => {
  const wrong = (row: object): string => {
    try {
      readMachineLabels(
        JSON.stringify([{ machine: "a", start: 1, end: 2, state: "faulty", ...row }]),
        "f",
      );
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  expect(wrong({})).toBe("");
  expect(wrong({ state: "bad" })).toBe("f: label 1: its state is neither faulty nor healthy");
  expect(wrong({ machine: "" })).toContain("names no machine");
  expect(wrong({ machine: "*" })).toContain("not all machines can be faulty");
  expect(wrong({ end: 1 })).toContain("no start before its end");
  expect(wrong({ cause: "gremlins" })).toContain("gremlins is no cause");
  expect(() => readMachineLabels("machine,start\n", "f")).toThrow("f holds no labels");
});
