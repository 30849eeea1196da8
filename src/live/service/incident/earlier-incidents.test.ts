import { describe, expect, it } from "vitest";
import { testIncident } from "../../../../test/support/live/incident.ts";
import { judged } from "../../../../test/support/live/judged.ts";
import type { Offender } from "../../../history/history.ts";
import type { Incident } from "../../../model/incident.ts";
import { untouched } from "../workflow/deeds.ts";
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
  incidents: () =>
    Promise.resolve(open.map((machines) => ({ id: "open", machines }) as unknown as Incident)),
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

  it("are as people corrected them; what they say of an open one waits until it is over", async () => {
    const known = history([offender("a", 2), offender("b", 2)], [["b"]]);
    const wrong = (incident: string, machine: string) => ({
      ...judged(false, { machines: [machine] }, { machine: "c" }),
      incident,
    });
    const said = [wrong("over", "a"), wrong("open", "b")];
    expect(
      [...(await earlierIncidents(known, 0, said))].sort(([a], [b]) => (a < b ? -1 : 1)),
    ).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
    ]);
  });

  it("count what was merged once, and take an open one away once", async () => {
    const handlings = new Map([["open", { ...untouched("open"), mergedInto: "over" }]]);
    const asked: unknown[] = [];
    const known = {
      offenders: async (...words: unknown[]) => (asked.push(words.at(-1)), [offender("a", 1)]),
      incidents: async ({ open = false }) => [
        testIncident({ id: open ? "open" : "over", machines: ["a"] }),
      ],
    };
    expect([...(await earlierIncidents(known, 0, [], handlings))]).toEqual([["a", 1]]);
    expect(asked).toEqual([["open"]]);
  });

  it("are none where the store fails or does not answer in time", async () => {
    const failing = { ...history([]), offenders: () => Promise.reject(new Error("away")) };
    expect((await earlierIncidents(failing, 0)).size).toBe(0);
    const silent = { ...history([]), offenders: () => new Promise<never>(() => undefined) };
    expect((await earlierIncidents(silent, 0, [], new Map(), 5)).size).toBe(0);
  });
});
