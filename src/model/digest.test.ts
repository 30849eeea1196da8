import { expect, it } from "vitest";
import { testIncident, testVerdict } from "../../test/support/live/incident.ts";
import { digestOf } from "./digest.ts";
import type { Handling } from "./handling.ts";
import type { Incident } from "./incident.ts";
import { untouched } from "../live/service/workflow/deeds.ts";

const HOUR_MS = 3_600_000;
const one = (n: number, cause: "gpu-slow" | "network-slow", machines: string[], hours: number) =>
  testIncident({
    id: `i${n}`,
    openedMs: n,
    state: "resolved",
    resolvedMs: n,
    machines,
    wastedGpuMs: hours * HOUR_MS,
    verdict: testVerdict({}, { cause }),
  });
const judged = (incident: string, isRight: boolean, machine: string | null): Handling => ({
  ...untouched(incident),
  judgement: {
    who: "ada",
    atMs: 1,
    isRight,
    machine,
    cause: isRight ? null : "storage",
    jobs: null,
    said: {
      job: "llama",
      openedMs: 0,
      stated: 0,
      kind: "hang",
      cause: null,
      confidence: 0.9,
      machines: [],
      records: [],
    },
  },
});

it("sums up what was lost by cause and machine, as people have corrected it", () => {
  const incidents = [
    one(1, "gpu-slow", ["a"], 4),
    one(2, "gpu-slow", ["a"], 2),
    one(3, "network-slow", ["a", "b"], 2),
    one(4, "network-slow", ["c"], 8),
    one(5, "gpu-slow", ["d"], 100),
    testIncident({ id: "i6", openedMs: 6, state: "suspected", verdict: null }),
    one(99, "gpu-slow", ["e"], 1),
  ];
  const handlings = new Map<string, Handling>([
    ["i1", judged("i1", true, null)],
    ["i4", judged("i4", false, "b")],
    ["i5", { ...untouched("i5"), mergedInto: "i1" }],
  ]);
  const digest = digestOf(incidents, handlings, { fromMs: 1, toMs: 50, nowMs: 50 }, false);
  expect(digest).toMatchObject({ incidents: 4, wastedGpuMs: 116 * HOUR_MS });
  expect(digest.judged).toEqual({ right: 1, wrong: 1 });
  const rows = (list: typeof digest.byCause): string[] =>
    list.map((row) => `${row.name} ${row.incidents} ${row.wastedGpuMs / HOUR_MS}`);
  expect(rows(digest.byCause)).toEqual(["gpu-slow 2 106", "storage 1 8", "network-slow 1 2"]);
  expect(rows(digest.byMachine)).toEqual(["a 3 107", "b 2 9"]);
  expect(rows(digest.repeated)).toEqual(["a 3 107", "b 2 9"]);
});

it("counts what was lost in the time it was lost in, also of incidents that last for weeks", () => {
  const DAY_MS = 24 * HOUR_MS;
  const hoursOf = (incident: Incident, fromDay: number, nowDay = fromDay + 7): number[] => {
    const times = {
      fromMs: fromDay * DAY_MS,
      toMs: (fromDay + 7) * DAY_MS,
      nowMs: nowDay * DAY_MS,
    };
    const found = digestOf([incident], new Map(), times, false);
    return [found.incidents, found.wastedGpuMs / HOUR_MS];
  };
  const long = { ...one(1, "gpu-slow", ["a"], 1300), openedMs: DAY_MS };
  const open = { ...long, state: "confirmed", resolvedMs: null } as const;
  expect(hoursOf(open, 7)).toEqual([1, 700]);
  expect(hoursOf({ ...open, wastedGpuMs: 600 * HOUR_MS }, 0)).toEqual([1, 600]);
  // It was sent late.
  expect(hoursOf(open, 0, 14)).toEqual([1, 600]);
  const over = { ...long, resolvedMs: 14 * DAY_MS };
  expect([0, 7, 14].map((day) => hoursOf(over, day, 20))).toEqual([
    [1, 600],
    [1, 700],
    [0, 0],
  ]);
  // What begins as the next one does is in the next one.
  expect(hoursOf({ ...long, openedMs: 7 * DAY_MS, resolvedMs: 8 * DAY_MS }, 0)).toEqual([0, 0]);
});

it("counts the same incident of two jobs once, and what each lost; where one is not seen, the other", () => {
  const [a, b] = [one(1, "gpu-slow", ["a"], 100), one(2, "network-slow", ["b"], 500)];
  const handlings = new Map([["i2", { ...untouched("i2"), mergedInto: "i1" }]]);
  const times = { fromMs: 0, toMs: 50, nowMs: 50 };
  const both = digestOf([a, b], handlings, times, false);
  expect(both.byCause).toEqual([{ name: "gpu-slow", incidents: 1, wastedGpuMs: 600 * HOUR_MS }]);
  expect(both).toMatchObject({ incidents: 1, wastedGpuMs: 600 * HOUR_MS });
  const alone = digestOf([b], handlings, times, false);
  expect(alone.byMachine).toEqual([{ name: "b", incidents: 1, wastedGpuMs: 500 * HOUR_MS }]);
  // Merged into each other by two services.
  handlings.set("i1", { ...untouched("i1"), mergedInto: "i2" });
  expect(digestOf([a, b], handlings, times, false).incidents).toBe(2);
});
