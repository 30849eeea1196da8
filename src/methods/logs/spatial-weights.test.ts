import { describe, expect, it } from "vitest";
import type { FaultMatch } from "../../library/matcher.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import { eventWeights } from "./spatial-weights.ts";
import { digestOf, identityTemplates } from "../../../test/support/methods/log-digest.ts";

function weightOf(text: string, record: Partial<FaultRecord> | null = null): number {
  const digest = digestOf([{ file: "a.log", text }]);
  const match = record && ((): FaultMatch[] => [{ record: record as FaultRecord, captures: {} }]);
  return eventWeights(digest, identityTemplates(digest), match)[0]!;
}

describe("the weight of an event", () => {
  it("is the library's role where it knows the line", () => {
    const roles = ["root", "confirmation", "cascade", "advice", "benign"] as const;
    const weights = roles.map((role) => weightOf("x", { role, layer: "torch" }));
    expect(weights).toEqual(weights.toSorted((a, b) => b - a));
    expect(weights[0]).toBe(1);
  });

  it("lets a kernel speak for its own node", () => {
    const peer = weightOf("x", { role: "cascade", layer: "torch" });
    expect(weightOf("x", { role: "cascade", layer: "kernel" })).toBeGreaterThan(peer);
  });

  it("goes by level and words where it does not", () => {
    expect(weightOf("ERROR disk failed")).toBeGreaterThan(weightOf("WARNING disk failed once"));
    expect(weightOf("WARNING disk failed once")).toBeGreaterThan(weightOf("INFO all is well"));
    expect(weightOf('  File "a.py", line 3, in error')).toBeLessThan(weightOf("INFO all is well"));
  });
});
