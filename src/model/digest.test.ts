import { expect, it } from "vitest";
import { testIncident, testVerdict } from "../../test/support/live/incident.ts";
import { digestOf } from "./digest.ts";
import type { Handling } from "./handling.ts";
import { untouched } from "../live/service/workflow/deeds.ts";

const HOUR_MS = 3_600_000;
const one = (n: number, cause: "gpu-slow" | "network-slow", machines: string[], hours: number) =>
  testIncident({
    id: `i${n}`,
    openedMs: n,
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
  const digest = digestOf(incidents, handlings, 1, 50, false);
  expect(digest).toMatchObject({ incidents: 4, wastedGpuMs: 16 * HOUR_MS });
  expect(digest.judged).toEqual({ right: 1, wrong: 1 });
  const rows = (list: typeof digest.byCause): string[] =>
    list.map((row) => `${row.name} ${row.incidents} ${row.wastedGpuMs / HOUR_MS}`);
  expect(rows(digest.byCause)).toEqual(["storage 1 8", "gpu-slow 2 6", "network-slow 1 2"]);
  expect(rows(digest.byMachine)).toEqual(["b 2 9", "a 3 7"]);
  expect(rows(digest.repeated)).toEqual(["a 3 7", "b 2 9"]);
});
