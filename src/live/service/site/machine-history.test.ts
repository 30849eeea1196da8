import { describe, expect, it } from "vitest";
import { testIncident } from "../../../../test/support/live/incident.ts";
import { judged } from "../../../../test/support/live/judged.ts";
import type { History } from "../../../history/history.ts";
import { untouched } from "../workflow/deeds.ts";
import { correctedOffenders, countedTwice } from "./machine-history.ts";

const offender = (machine: string, incidents: number) => ({
  machine,
  incidents,
  jobs: incidents,
  lastMs: 5,
  causes: ["gpu-hang"],
});
const counts = (...words: Parameters<typeof correctedOffenders>) =>
  correctedOffenders(...words).map(({ machine, incidents }) => [machine, incidents]);

describe("the history of machines", () => {
  it("moves an incident to the machine that it really was", () => {
    const said = { machines: ["a", "b"] };
    const wrong = judged(false, said, { machine: "c", cause: "network-hang" });
    const found = correctedOffenders([offender("a", 3), offender("b", 1)], [wrong], 0);
    expect(found).toMatchObject([
      { machine: "a", incidents: 2, jobs: 2 },
      { machine: "c", incidents: 1, jobs: 1, lastMs: 1000, causes: ["network-hang"] },
    ]);
  });

  it("takes it from those accused where nobody knows whose it was, and leaves what was right", () => {
    const known = [offender("a", 2)];
    expect(counts(known, [judged(false, { machines: ["a"] })], 0)).toEqual([["a", 1]]);
    expect(counts(known, [judged(true, { machines: ["a"] })], 0)).toEqual([["a", 2]]);
  });

  it("keeps it for one of several that were accused where somebody says which", () => {
    const right = judged(true, { machines: ["a", "b"] }, { machine: "b" });
    expect(counts([offender("a", 1), offender("b", 1)], [right], 0)).toEqual([["b", 1]]);
  });

  it("corrects only what is counted: incidents since the moment", () => {
    const old = judged(false, { machines: ["a"], openedMs: 10 }, { machine: "c" });
    expect(counts([offender("a", 1)], [old], 11)).toEqual([["a", 1]]);
  });
});

it("counts incidents that were merged once, unless the other one is not counted", async () => {
  const merged = (incident: string, mergedInto: string) =>
    [incident, { ...untouched(incident), mergedInto }] as const;
  const handlings = new Map([merged("b.1", "a.1"), merged("c.1", "b.1"), merged("d.1", "old.1")]);
  const asked: unknown[] = [];
  const history: Pick<History, "incidents"> = {
    incidents: async (query) => (asked.push(query), [testIncident({ id: "a.1" })]),
  };
  expect(await countedTwice(history, handlings, 5, ["a"])).toEqual(["b.1", "c.1"]);
  expect(asked).toEqual([{ ids: ["a.1", "old.1"], sinceMs: 5, most: 2, jobs: ["a"] }]);
  const suspicion = [testIncident({ id: "a.1", state: "suspected", verdict: null })];
  expect(await countedTwice({ incidents: async () => suspicion }, handlings, 5)).toEqual([]);
});
