import { describe, expect, it } from "vitest";
import { placedJob } from "../../test/support/mitigate/placed-jobs.ts";
import { remediesOf } from "./remedies.ts";

describe("a swap", () => {
  /** A congested link leaves the gradient exchange by one swap (Greyhound's Figure 11). */
  const strategies = (slotsPerMachine: number): string[] => {
    const job = placedJob(2, 2, { links: [{ a: 2, b: 3, factor: 4 }], slotsPerMachine });
    return remediesOf(job).plans.map(({ strategy }) => strategy);
  };

  it("is of two machines, never of a machine with itself", () => {
    expect(strategies(1)).toContain("S3");
    expect(strategies(4)).not.toContain("S3");
  });
});
