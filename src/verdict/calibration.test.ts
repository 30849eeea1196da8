import { describe, expect, it } from "vitest";
import { calibrated, earned } from "./calibration.ts";
import { EARNED, UNPROVEN } from "./earned-table.ts";

describe("confidence", () => {
  it("never falls where the probability rises", () => {
    const values = Array.from({ length: 101 }, (_, i) => calibrated(i / 100));
    expect(values).toEqual([...values].sort((a, b) => a - b));
  });

  it("of a method that decided no verdict of the kind on a real job stays below 0.8", () => {
    expect(UNPROVEN).toBeLessThan(0.8);
    expect(earned("hang", "no/such-method")).toBe(UNPROVEN);
    expect(earned("faulty-machine", "hang/wait-graph")).toBe(UNPROVEN);
  });

  it("is what the method has earned with this kind of verdict", () => {
    for (const [kind, methods] of Object.entries(EARNED))
      for (const [method, share] of Object.entries(methods)) {
        expect(earned(kind as Parameters<typeof earned>[0], method)).toBe(share);
        expect(share).toBeGreaterThan(0);
        expect(share).toBeLessThan(1);
      }
  });
});
