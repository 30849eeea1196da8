import { describe, expect, it } from "vitest";
import { placedJob } from "../../test/support/mitigate/placed-jobs.ts";
import { remediesOf } from "./remedies.ts";

describe("places that are changed", () => {
  /** Two stages of two replicas; what is slow is spread over both, and one swap brings it together. */
  const strategies = (machines: readonly string[]): string[] => {
    const job = placedJob(2, 2, {});
    const slots = job.slots.map((slot, i) => ({
      ...slot,
      machine: machines[i]!,
      compute: i === 0 || i === 3 ? 2 : 1,
    }));
    return remediesOf({ ...job, slots }, { mayBeUneven: false }).plans.map(
      ({ strategy }) => strategy,
    );
  };

  it("are those of different machines, never of a machine with itself", () => {
    expect(strategies(["a", "b", "c", "d"])).toContain("S3");
    expect(strategies(["a", "a", "a", "a"])).not.toContain("S3");
  });
});
