import { expect, it } from "vitest";
import { testIncident, testVerdict } from "../../test/support/live/incident.ts";
import { byDay, matching, mostNamed } from "./matching.ts";

const DAY = 86_400_000;
const hang = testIncident({ id: "a", onsetMs: 10 * DAY + 5, wastedGpuMs: 100 });
const slow = testIncident({
  id: "b",
  job: "moe",
  kind: "fail-slow",
  state: "resolved",
  ending: "fixed",
  machines: ["node007"],
  ranks: [56],
  onsetMs: 12 * DAY,
  wastedGpuMs: 40,
  verdict: testVerdict({ kind: "fail-slow" }, { cause: "network-slow", machine: "node007" }),
});
const again = { ...slow, id: "c", onsetMs: 12 * DAY + 7, wastedGpuMs: 2 };
const all = [hang, slow, again];

it("finds incidents by every word: job, machine, rank, cause, state, how it ended", () => {
  const ids = (words: string): string[] => matching(all, words).map(({ id }) => id);
  expect(ids("")).toEqual(["a", "b", "c"]);
  expect(ids("LLAMA")).toEqual(["a"]);
  expect(ids("node007 fixed")).toEqual(["b", "c"]);
  expect(ids("rank 56")).toEqual(["b", "c"]);
  const marks = { ...hang, id: "d", summary: "rank 4: 117,156 marks, 56.5 a second" };
  expect(matching([...all, marks], "rank 56").map(({ id }) => id)).toEqual(["b", "c"]);
  expect(ids("network-slow open")).toEqual([]);
  expect(ids("open gpu-hang")).toEqual(["a"]);
});

it("sums up losses by day, the latest first, and counts by job and machine", () => {
  expect(byDay(all)).toEqual([
    { day: "1970-01-13", incidents: 2, wastedGpuMs: 42 },
    { day: "1970-01-11", incidents: 1, wastedGpuMs: 100 },
  ]);
  expect(byDay([{ ...hang, onsetMs: 1e300 }])).toEqual([]);
  expect(mostNamed(all, ({ machines }) => machines, 1)).toEqual([
    { name: "node007", incidents: 2 },
  ]);
});
