import { describe, expect, it } from "vitest";
import type { Offender } from "../../history/history.ts";
import type { Incident } from "../../model/incident.ts";
import { earlierIncidents } from "./earlier-incidents.ts";

const offender = (machine: string, incidents: number): Offender => ({
  machine,
  incidents,
  jobs: 1,
  lastMs: 0,
  causes: [],
});

const history = (offenders: readonly Offender[], open: readonly string[][] = []) => ({
  offenders: () => Promise.resolve(offenders),
  incidents: () => Promise.resolve(open.map((machines) => ({ machines }) as unknown as Incident)),
});

describe("earlier incidents of machines", () => {
  it("are those of the history", async () => {
    const counts = await earlierIncidents(history([offender("a", 3), offender("b", 1)]), 0);
    expect([...counts]).toEqual([
      ["a", 3],
      ["b", 1],
    ]);
  });

  it("leave out what is still open, which may be the one that is asked about", async () => {
    const known = history([offender("a", 3), offender("b", 1)], [["a", "b"], ["c"]]);
    expect([...(await earlierIncidents(known, 0))]).toEqual([["a", 2]]);
  });

  it("are none where the store fails or does not answer in time", async () => {
    const failing = { ...history([]), offenders: () => Promise.reject(new Error("away")) };
    expect((await earlierIncidents(failing, 0)).size).toBe(0);
    const silent = { ...history([]), offenders: () => new Promise<never>(() => undefined) };
    expect((await earlierIncidents(silent, 0, [], 5)).size).toBe(0);
  });
});
